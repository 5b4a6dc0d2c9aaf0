// node main.js FOLDER: writes each dashboard to a file in FOLDER.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildBoard } from './board';
import { fleet } from './fleet';
import { gpu } from './gpu';
import { jobs } from './jobs';

const [folder] = process.argv.slice(2);
if (!folder) throw new Error('usage: main.js FOLDER');
for (const [name, board] of Object.entries({ fleet, gpu, jobs })) {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(buildBoard(board), null, 2)}\n`);
}
