// Makes the one file that the dashboard and its pages to take away use; --check compares it with
// the one that is kept, --tests runs the tests.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const kept = join(here, "../../agg_core/plotting/flow_map");
const shared = {
  absWorkingDir: here, bundle: true, format: "esm", target: "es2022", write: false,
  logLevel: "warning", charset: "utf8",
};

if (process.argv.includes("--tests")) {
  const folder = mkdtempSync(join(tmpdir(), "flow-map-"));
  const names = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  for (const name of names) {
    const { outputFiles } = await build({
      ...shared, entryPoints: [`test/${name}`], platform: "node", external: ["node:*"],
    });
    writeFileSync(join(folder, name.replace(/ts$/, "mjs")), outputFiles[0].text);
  }
  const files = readdirSync(folder).map((name) => join(folder, name));
  const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
  rmSync(folder, { recursive: true });
  process.exit(status ?? 1);
}

const { outputFiles, metafile } = await build({
  ...shared, entryPoints: ["src/index.ts"], minify: true, legalComments: "none", metafile: true,
  define: { "process.env.NODE_ENV": '"production"' },
  banner: { js: "const flowMapGlobals={};" }, plugins: [{ name: "own globals", setup: ownGlobals }],
});
// An end of a script element within the script would end it on a page.
const made = outputFiles[0].text.replaceAll("</script", "<\\/script");
const files = { [`${kept}.js`]: made, [`${kept}.licences.txt`]: licences(metafile) };
for (const [file, content] of Object.entries(files)) {
  if (!process.argv.includes("--check")) writeFileSync(file, content);
  else if (readFileSync(file, "utf8") !== content) {
    console.error(`${file} differs from its sources: run \`npm run build\`.`);
    process.exit(1);
  }
}
console.log(`${(made.length / 1000).toFixed(0)} kB`);

/** deck.gl and luma.gl refuse to start beside another version of themselves, which they look for in
 * the window; the dashboard's own program, for the maps of other pages, holds one. */
function ownGlobals(builder) {
  builder.onLoad({ filter: /@(deck|luma)\.gl\/.*\.js$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    const contents = text.replaceAll(/globalThis\.(deck|luma)\b/g, "flowMapGlobals.$1");
    return { contents, loader: "js" };
  });
}

/** Names, versions and licences of all packages that went into the file, each text once. */
function licences({ outputs }) {
  const [{ inputs }] = Object.values(outputs);
  const packages = new Set(
    Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .flatMap(([path]) => path.match(/.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []),
  );
  const byText = new Map();
  for (const folder of [...packages].sort()) {
    const at = join(here, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
    const file = readdirSync(at).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(at, file), "utf8").trim() : "";
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}, ${license}`]);
  }
  return [...byText].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`)
    .join(`\n${"-".repeat(72)}\n\n`);
}
