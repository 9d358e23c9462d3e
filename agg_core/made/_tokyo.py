"""Round facts about Greater Tokyo for the synthetic commuters: places, railways, shores.

Every number is a rough figure that anyone who knows the city could write down: coordinates of
well-known stations to about 100 m, residents and jobs of the surroundings in thousands, a share
of evening and shopping visits. They shape a believable day; they are no statistics.
"""

from __future__ import annotations

__all__ = ["COMMUTER_DAY", "COMMUTER_ZONE", "LINES", "PLACES", "SHORES"]

COMMUTER_DAY = "2025-06-11"
"""The Wednesday that `commuter_day` plays, from midnight to midnight in `COMMUTER_ZONE`."""

COMMUTER_ZONE = "Asia/Tokyo"

# name, longitude, latitude, residents (thousands), jobs (thousands), pull on visitors
PLACES = """
Tokyo 139.767 35.681 8 330 5
Otemachi 139.765 35.687 2 320 1
Kanda 139.771 35.693 20 160 2
Akihabara 139.773 35.699 40 150 4
Ueno 139.777 35.713 90 120 6
Asakusa 139.797 35.711 110 70 3
Nippori 139.771 35.728 90 40 1
Tabata 139.761 35.738 80 30 0.5
Oji 139.738 35.753 110 40 0.6
Otsuka 139.730 35.732 110 70 1
Ikebukuro 139.711 35.730 150 210 9
Takadanobaba 139.704 35.713 120 90 3
Shinjuku 139.700 35.690 120 430 14
Shibuya 139.701 35.658 110 330 11
Ebisu 139.710 35.647 60 100 3
Meguro 139.716 35.634 100 80 1.5
Gotanda 139.724 35.626 60 100 1.5
Osaki 139.728 35.620 40 100 1
Shinagawa 139.740 35.629 60 230 2
Tennozu 139.750 35.622 20 60 0.3
Hamamatsucho 139.757 35.655 40 180 1.5
Shimbashi 139.758 35.666 10 260 6
Ginza 139.765 35.672 20 200 7
Nihombashi 139.775 35.682 30 210 2
Hatchobori 139.778 35.674 50 130 0.5
Kasumigaseki 139.750 35.673 5 220 0.5
Akasaka 139.737 35.675 40 170 2
Roppongi 139.732 35.663 60 180 5
Yotsuya 139.730 35.686 60 110 1
Iidabashi 139.745 35.702 60 150 1.5
Hongo 139.760 35.708 90 80 0.7
Sugamo 139.739 35.734 100 40 1
Monzen 139.796 35.672 120 90 1.2
Toyocho 139.818 35.670 150 80 0.8
Toyosu 139.796 35.655 110 110 1.5
Ariake 139.791 35.634 15 60 3
ShinKiba 139.827 35.646 15 40 0.2
Kinshicho 139.814 35.697 130 90 3.5
Oshiage 139.813 35.710 120 50 2
Kameido 139.827 35.698 120 50 1
Ojima 139.838 35.690 140 30 0.4
Kasai 139.873 35.664 190 40 1
KasaiRinkai 139.861 35.646 40 15 0.3
Funabori 139.864 35.684 130 35 0.4
Mizue 139.898 35.693 120 20 0.4
ShinKoiwa 139.858 35.717 170 40 0.9
Koiwa 139.884 35.733 160 30 0.9
Aoto 139.857 35.745 130 30 0.5
Kanamachi 139.870 35.770 120 25 0.6
Kitasenju 139.805 35.750 130 70 4
Machiya 139.781 35.743 110 35 0.4
Ayase 139.825 35.762 150 30 0.8
Nishiarai 139.790 35.777 150 35 0.8
Takenotsuka 139.791 35.795 130 25 0.5
Rokucho 139.822 35.785 90 20 0.2
Toneri 139.770 35.797 80 20 0.1
Akabane 139.721 35.778 170 60 2.5
Itabashi 139.720 35.746 160 50 0.6
Shimura 139.686 35.777 160 60 0.5
Takashimadaira 139.662 35.789 110 40 0.4
Narimasu 139.632 35.777 150 35 0.9
Hikarigaoka 139.629 35.759 130 20 0.7
Nerima 139.654 35.738 190 60 1.3
Shakujii 139.607 35.743 150 25 0.7
Oizumi 139.586 35.750 130 20 0.6
Nogata 139.652 35.720 130 20 0.4
KamiShakujii 139.592 35.726 110 15 0.3
Nakano 139.666 35.706 140 60 3
Koenji 139.650 35.705 130 30 1.6
Ogikubo 139.620 35.704 170 45 1.6
Kichijoji 139.580 35.703 130 70 5
Meidaimae 139.650 35.668 150 30 0.7
Karasuyama 139.601 35.668 150 25 0.6
Shimokitazawa 139.668 35.662 120 30 2.5
Kyodo 139.636 35.651 150 25 0.8
Seijo 139.599 35.641 150 25 0.8
Sangenjaya 139.670 35.643 150 45 2
Futako 139.627 35.612 120 50 2
Nakameguro 139.699 35.644 90 50 1.5
Jiyugaoka 139.668 35.607 130 30 1.8
Denenchofu 139.667 35.597 90 12 0.3
Hatanodai 139.702 35.605 160 30 0.7
Oimachi 139.735 35.606 120 70 1.5
Omori 139.728 35.588 150 70 1.3
Kamata 139.716 35.562 220 110 2.8
Haneda 139.783 35.550 20 45 0.8
Kawaguchi 139.717 35.802 220 80 1.8
Warabi 139.690 35.828 170 40 0.8
TodaKoen 139.678 35.808 110 50 0.4
Hatogaya 139.735 35.831 120 25 0.3
HigashiKawaguchi 139.744 35.875 110 25 0.4
Urawa 139.657 35.859 180 110 2.2
MusashiUrawa 139.648 35.846 130 35 0.8
MinamiUrawa 139.669 35.848 110 25 0.4
SaitamaShintoshin 139.634 35.894 90 60 1.8
Omiya 139.624 35.906 220 170 6
Sashiogi 139.560 35.916 90 15 0.3
Ageo 139.588 35.973 220 70 1
Okegawa 139.558 35.998 110 30 0.5
Konosu 139.509 36.059 130 40 0.4
Kumagaya 139.390 36.139 170 80 0.8
Hasuda 139.652 35.980 100 30 0.3
Kuki 139.677 36.066 140 50 0.6
Koga 139.710 36.190 110 45 0.4
Iwatsuki 139.690 35.950 120 45 0.4
Soka 139.804 35.829 240 75 1.2
Yashio 139.845 35.808 85 35 0.3
Koshigaya 139.787 35.888 170 55 0.9
MinamiKoshigaya 139.790 35.876 160 45 1.6
Kasukabe 139.752 35.980 230 70 1.1
TobuDobutsu 139.727 36.025 80 20 0.2
Yoshikawa 139.843 35.877 70 20 0.3
Misato 139.878 35.830 130 45 1
Wako 139.612 35.788 110 45 0.5
Asakadai 139.587 35.815 210 60 0.9
Shiki 139.576 35.822 140 30 0.8
Fujimino 139.520 35.860 210 60 0.8
Kawagoe 139.484 35.908 340 130 3
Sakado 139.402 35.955 150 45 0.5
Higashimatsuyama 139.403 36.034 90 40 0.4
Hibarigaoka 139.546 35.752 150 25 0.6
Akitsu 139.494 35.778 160 40 0.5
Tokorozawa 139.473 35.787 290 90 2.4
Irumashi 139.389 35.842 150 50 0.7
Hanno 139.318 35.852 80 30 0.4
Sayamashi 139.412 35.858 150 60 0.5
Tanashi 139.540 35.727 140 35 0.6
Kodaira 139.489 35.737 130 40 0.4
Higashimurayama 139.466 35.760 150 35 0.4
TamagawaJosui 139.418 35.732 160 45 0.4
Haijima 139.343 35.721 110 40 0.4
Mitaka 139.561 35.703 150 50 1
Koganei 139.507 35.701 130 30 0.8
Kokubunji 139.480 35.700 130 45 1.2
NishiKokubunji 139.466 35.700 60 15 0.2
Kunitachi 139.446 35.699 90 25 0.6
Tachikawa 139.414 35.698 170 120 5
Hino 139.394 35.679 100 40 0.3
Hachioji 139.339 35.656 270 130 3
Takao 139.282 35.642 120 25 0.4
Fussa 139.328 35.742 100 40 0.4
Ome 139.258 35.790 110 40 0.4
Akigawa 139.287 35.728 75 20 0.3
Chofu 139.544 35.652 190 70 1.4
Fuchu 139.480 35.671 160 90 1.6
FuchuHommachi 139.477 35.664 60 20 0.2
Seiseki 139.447 35.651 100 30 1
Takahata 139.413 35.662 120 30 0.5
Inagi 139.500 35.636 80 20 0.2
TamaCenter 139.424 35.625 150 60 1.3
MinamiOsawa 139.380 35.614 120 35 0.8
Hashimoto 139.345 35.595 210 70 1.2
Noborito 139.570 35.621 140 35 0.8
ShinYurigaoka 139.508 35.603 160 40 1.2
Machida 139.446 35.542 280 110 4.5
SagamiOno 139.438 35.532 170 50 1.4
Fuchinobe 139.395 35.569 210 75 0.7
Ebina 139.391 35.452 170 65 1.6
HonAtsugi 139.364 35.439 210 120 1.6
Isehara 139.314 35.395 100 40 0.3
Hadano 139.227 35.374 130 45 0.3
Yamato 139.462 35.470 210 65 1
ChuoRinkan 139.444 35.507 120 25 0.4
Shonandai 139.466 35.397 150 60 0.6
Fujisawa 139.487 35.341 200 85 2
Mizonokuchi 139.611 35.599 200 75 1.5
Saginuma 139.573 35.579 190 30 0.6
TamaPlaza 139.559 35.577 160 35 1.4
Aobadai 139.517 35.543 160 30 0.8
Nagatsuta 139.495 35.532 120 30 0.4
MusashiKosugi 139.660 35.577 190 85 2.2
Kashimada 139.674 35.551 130 55 0.4
Hiyoshi 139.647 35.554 150 35 0.7
Kikuna 139.631 35.510 140 25 0.4
ShinYokohama 139.617 35.508 90 110 1.8
CenterMinami 139.574 35.545 200 70 1.4
Kamoi 139.567 35.512 120 50 1
Kawasaki 139.697 35.531 170 130 4
Daishi 139.730 35.532 100 60 0.3
Tsurumi 139.676 35.508 220 75 1
Yokohama 139.622 35.466 180 220 8
Sakuragicho 139.629 35.450 60 110 2.5
Kannai 139.637 35.444 90 120 2
Isogo 139.618 35.401 140 45 0.4
Konandai 139.577 35.374 150 25 0.8
Kamiooka 139.596 35.409 220 50 1.4
Hoshikawa 139.601 35.458 190 45 0.4
Futamatagawa 139.532 35.463 210 40 0.8
Mitsukyo 139.500 35.464 130 25 0.4
IzumiChuo 139.490 35.420 130 25 0.2
Totsuka 139.534 35.401 230 75 1.3
Ofuna 139.531 35.354 170 60 1.2
Kamakura 139.550 35.321 80 30 1
Zushi 139.580 35.297 80 18 0.2
Yokosuka 139.664 35.278 230 80 1
KanazawaBunko 139.622 35.342 190 60 0.5
Chigasaki 139.407 35.333 220 60 0.6
Hiratsuka 139.350 35.330 220 90 0.7
Samukawa 139.384 35.373 70 25 0.1
Ichikawa 139.908 35.730 140 35 0.9
Motoyawata 139.927 35.721 150 45 1
Urayasu 139.893 35.666 80 35 0.6
Maihama 139.884 35.638 20 40 4
ShinUrayasu 139.912 35.651 90 30 0.8
Gyotoku 139.914 35.683 160 30 0.6
IchikawaShiohama 139.925 35.668 20 25 0.1
Futamata 139.963 35.692 15 20 0.1
MinamiFunabashi 139.994 35.684 25 25 2
NishiFunabashi 139.959 35.707 130 30 0.8
Funabashi 139.985 35.702 190 80 2.4
Tsudanuma 140.020 35.691 200 70 2
Makuhari 140.042 35.673 110 25 0.4
KaihinMakuhari 140.042 35.650 80 80 2
InageKaigan 140.070 35.630 90 15 0.4
Inage 140.092 35.637 140 35 0.5
Chiba 140.113 35.613 180 140 4
ChibaMinato 140.104 35.609 40 35 0.3
Soga 140.131 35.582 160 40 0.6
Goi 140.090 35.512 150 65 0.6
Anegasaki 140.048 35.479 90 35 0.2
Sodegaura 139.960 35.432 60 25 0.2
Kisarazu 139.927 35.382 110 45 0.7
Yotsukaido 140.168 35.664 110 30 0.4
Sakura 140.228 35.715 100 35 0.3
Narita 140.314 35.777 110 90 1
Yachiyodai 140.090 35.701 120 25 0.4
Katsutadai 140.126 35.713 110 25 0.4
KitaNarashino 140.042 35.720 150 30 0.5
Midorigaoka 140.073 35.728 80 20 0.5
HigashiMatsudo 139.944 35.770 110 20 0.2
ShinKamagaya 140.000 35.777 160 30 0.7
ChibaNewTown 140.116 35.802 110 35 0.7
Matsudo 139.901 35.784 230 70 1.4
ShinMatsudo 139.921 35.826 150 30 0.6
MinamiNagareyama 139.904 35.838 90 20 0.3
Otakanomori 139.925 35.872 110 25 1.5
Kashiwa 139.971 35.862 250 95 3
Kashiwanoha 139.952 35.893 80 35 1
Noda 139.868 35.946 140 50 0.4
Abiko 140.010 35.873 130 35 0.5
Toride 140.063 35.896 110 35 0.4
Moriya 139.992 35.951 110 35 0.5
Tsukuba 140.111 36.083 160 100 1
Ushiku 140.141 35.975 110 30 0.4
Tsuchiura 140.206 36.079 130 65 0.5
"""

# speed over a line in km/h with its stops, then its places in order
LINES = """
36 Osaki Shinagawa Hamamatsucho Shimbashi Ginza Tokyo Kanda Akihabara Ueno Nippori Tabata Sugamo
36 Sugamo Otsuka Ikebukuro Takadanobaba Shinjuku Shibuya Ebisu Meguro Gotanda Osaki
45 Tokyo Shimbashi Shinagawa Oimachi Omori Kamata Kawasaki Tsurumi Yokohama
58 Yokohama Totsuka Ofuna Fujisawa Chigasaki Hiratsuka
55 Shinagawa MusashiKosugi Kashimada Tsurumi
50 Ofuna Kamakura Zushi Yokosuka
36 Yokohama Sakuragicho Kannai Isogo Konandai Ofuna
48 Shinagawa Kamata Haneda
46 Yokohama Kamiooka KanazawaBunko Yokosuka
42 Kannai Kamiooka Totsuka Shonandai
36 TamaPlaza CenterMinami ShinYokohama Yokohama
42 Kikuna ShinYokohama Kamoi Nagatsuta Machida Fuchinobe Hashimoto Hachioji
42 Yokohama Hoshikawa Futamatagawa Mitsukyo Yamato Ebina
40 Futamatagawa IzumiChuo Shonandai
40 Kawasaki Kashimada MusashiKosugi Mizonokuchi Noborito Inagi FuchuHommachi Fuchu Tachikawa
34 Kawasaki Daishi
40 Chigasaki Samukawa Ebina Hashimoto
44 Shibuya Nakameguro Jiyugaoka Denenchofu MusashiKosugi Hiyoshi Kikuna Yokohama
44 Meguro Hatanodai Denenchofu MusashiKosugi
32 Oimachi Hatanodai Jiyugaoka Futako
30 Gotanda Hatanodai Kamata
44 Shibuya Sangenjaya Futako Mizonokuchi Saginuma TamaPlaza Aobadai Nagatsuta ChuoRinkan
46 Shinjuku Shimokitazawa Kyodo Seijo Noborito ShinYurigaoka Machida SagamiOno Ebina HonAtsugi
46 HonAtsugi Isehara Hadano
44 SagamiOno ChuoRinkan Yamato Shonandai Fujisawa
42 ShinYurigaoka TamaCenter
46 Shinjuku Meidaimae Karasuyama Chofu Fuchu Seiseki Takahata Hachioji Takao
44 Chofu Inagi TamaCenter MinamiOsawa Hashimoto
36 Shibuya Shimokitazawa Meidaimae Kichijoji
48 Tokyo Kanda Yotsuya Shinjuku Nakano Koenji Ogikubo Kichijoji Mitaka Koganei Kokubunji
48 Kokubunji NishiKokubunji Kunitachi Tachikawa Hino Hachioji Takao
42 Tachikawa Haijima Fussa Ome
38 Haijima Akigawa
36 Yotsuya Iidabashi Akihabara Kinshicho
42 Kinshicho Kameido ShinKoiwa Koiwa Ichikawa Motoyawata NishiFunabashi Funabashi Tsudanuma
46 Tsudanuma Makuhari Inage Chiba Soga Goi Anegasaki Sodegaura Kisarazu
50 Chiba Yotsukaido Sakura Narita
54 Tokyo Nihombashi Kinshicho ShinKoiwa Ichikawa
50 Tokyo Hatchobori ShinKiba KasaiRinkai Maihama ShinUrayasu IchikawaShiohama Futamata
50 Futamata MinamiFunabashi KaihinMakuhari InageKaigan ChibaMinato Soga
36 ChibaMinato Chiba
40 Futamata NishiFunabashi
38 Otemachi Nihombashi Monzen Toyocho Kasai Urayasu Gyotoku NishiFunabashi
36 Otemachi Iidabashi Takadanobaba Nakano
46 NishiFunabashi KitaNarashino Midorigaoka Katsutadai
44 Nippori Machiya Kitasenju Aoto Koiwa Ichikawa
40 Oshiage Aoto Koiwa
46 Funabashi Tsudanuma Yachiyodai Katsutadai Sakura Narita
54 Aoto HigashiMatsudo ShinKamagaya ChibaNewTown Narita
52 Ueno Nippori Kitasenju Ayase Kanamachi Matsudo ShinMatsudo Kashiwa Abiko Toride Ushiku Tsuchiura
56 Akihabara Asakusa Kitasenju Rokucho Yashio Misato MinamiNagareyama Otakanomori Kashiwanoha Moriya
62 Moriya Tsukuba
42 Oshiage Asakusa
40 Oshiage Kitasenju
44 Kitasenju Nishiarai Takenotsuka Soka MinamiKoshigaya Koshigaya Kasukabe TobuDobutsu Kuki
38 Omiya Iwatsuki Kasukabe Noda Otakanomori Kashiwa ShinKamagaya Funabashi
44 Ueno Tabata Oji Akabane Kawaguchi Warabi MinamiUrawa Urawa SaitamaShintoshin Omiya
56 Akabane Urawa Omiya Ageo Okegawa Konosu Kumagaya
56 Omiya Hasuda Kuki Koga
46 Shinjuku Ikebukuro Itabashi Akabane TodaKoen MusashiUrawa Omiya
42 Omiya Sashiogi Kawagoe Sakado
50 FuchuHommachi NishiKokubunji Akitsu Asakadai MusashiUrawa MinamiUrawa HigashiKawaguchi
50 HigashiKawaguchi MinamiKoshigaya Yoshikawa Misato MinamiNagareyama ShinMatsudo HigashiMatsudo
50 HigashiMatsudo NishiFunabashi
34 Otemachi Kanda Hongo Sugamo Shimura Takashimadaira
46 Ikebukuro Narimasu Wako Asakadai Shiki Fujimino Kawagoe Sakado Higashimatsuyama
44 Ikebukuro Nerima Shakujii Oizumi Hibarigaoka Akitsu Tokorozawa Irumashi Hanno
42 Takadanobaba Nogata KamiShakujii Tanashi Kodaira Higashimurayama Tokorozawa Sayamashi Kawagoe
38 Kodaira TamagawaJosui Haijima
34 Tachikawa TamagawaJosui Higashimurayama
34 Tachikawa Takahata TamaCenter
38 Hachioji Haijima Irumashi
34 Shinjuku Nakano Nerima Hikarigaoka Narimasu
34 Akabane Oji Hongo Iidabashi Yotsuya Akasaka Roppongi Meguro
40 Akabane Hatogaya HigashiKawaguchi
30 Nippori Toneri
36 Kitasenju Machiya Hongo Otemachi Kasumigaseki Akasaka Shibuya
32 Kitasenju Ueno Akihabara Nihombashi Ginza Kasumigaseki Roppongi Ebisu
30 Ginza Shimbashi Akasaka Shibuya
34 Ikebukuro Hongo Otemachi Tokyo Ginza Kasumigaseki Akasaka Yotsuya Shinjuku
34 Oshiage Kinshicho Nihombashi Otemachi Akasaka Shibuya Shimokitazawa
34 Ikebukuro Iidabashi Yotsuya Kasumigaseki Ginza Toyosu ShinKiba
34 Wako Takashimadaira Ikebukuro
36 Shinjuku Iidabashi Kanda Monzen Ojima Funabori Mizue Motoyawata
38 Hamamatsucho Tennozu Haneda
40 Osaki Tennozu Ariake ShinKiba
30 Shimbashi Ariake Toyosu
30 Monzen Toyosu
30 Toyocho Kinshicho
28 Kasai Funabori ShinKoiwa Aoto Kanamachi
28 Ogikubo KamiShakujii Oizumi
28 Kyodo Karasuyama KamiShakujii
28 Sangenjaya Jiyugaoka Omori
"""

# Open water as rings of longitude and latitude, drawn by eye a little inland of the quays:
# Tokyo Bay from Yokosuka round to Futtsu, and Sagami Bay.
SHORES = (
    (
        (139.750, 35.250), (139.720, 35.270), (139.672, 35.290), (139.650, 35.305),
        (139.635, 35.320), (139.650, 35.345), (139.645, 35.385), (139.630, 35.395),
        (139.660, 35.415), (139.655, 35.440), (139.635, 35.452), (139.640, 35.464),
        (139.665, 35.474), (139.690, 35.487), (139.745, 35.510), (139.780, 35.530),
        (139.800, 35.545), (139.785, 35.562), (139.742, 35.590), (139.752, 35.620),
        (139.754, 35.645), (139.764, 35.653), (139.774, 35.648), (139.780, 35.645),
        (139.790, 35.618), (139.800, 35.618), (139.805, 35.635), (139.840, 35.634),
        (139.875, 35.624), (139.905, 35.622), (139.932, 35.643), (139.922, 35.660),
        (139.945, 35.676), (139.985, 35.670), (140.010, 35.655), (140.075, 35.605),
        (140.095, 35.588), (140.085, 35.575), (140.100, 35.552), (140.072, 35.545),
        (140.035, 35.508), (140.005, 35.475), (139.955, 35.440), (139.920, 35.438),
        (139.902, 35.390), (139.880, 35.370), (139.840, 35.345), (139.810, 35.318),
        (139.840, 35.280), (139.800, 35.200), (139.750, 35.200),
    ),
    (
        (139.200, 35.280), (139.300, 35.309), (139.350, 35.319), (139.440, 35.322),
        (139.475, 35.316), (139.520, 35.312), (139.545, 35.312), (139.558, 35.296),
        (139.575, 35.290), (139.575, 35.260), (139.600, 35.230), (139.600, 35.100),
        (139.200, 35.100),
    ),
)  # fmt: skip
