// The official TypeScript client: `node typescript_client.mjs URL TOKEN CALLS`. CALLS is a JSON list of [tool, arguments].
// Lists the tools, makes the calls one by one, and prints a JSON list of results or {"threw": message}.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token, calls] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" });
const errors = [];
client.onerror = (error) => errors.push(String(error));
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
let cursor;
do {
  ({ nextCursor: cursor } = await client.listTools({ cursor }));
} while (cursor);
const results = [];
for (const [name, args] of JSON.parse(calls)) {
  results.push(await client.callTool({ name, arguments: args }).catch((error) => ({ threw: String(error) })));
}
await client.close();
console.log(JSON.stringify({ results, errors }));
