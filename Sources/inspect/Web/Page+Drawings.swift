extension Page {
  /// The timeline and the graph of dependencies, as SVG.
  static let drawingScript = #"""
    function svg(tag, attributes, text) {
      const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
      for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
      if (text !== undefined) node.textContent = text;
      return node;
    }

    // Contents are drawn again only when what they show has changed.
    const drawn = new WeakMap();
    function isDrawn(node, key) {
      if (drawn.get(node) === key) return true;
      drawn.set(node, key);
      return false;
    }

    function drawRuns(store) {
      const line = state.timelines.get(store.id);
      const runs = line ? line.runs.slice(-12).reverse() : [];
      $('runs-part').hidden = !runs.length;
      if (!runs.length) return;
      const isRunning = runs.some((run) => run.ended === undefined);
      const width = Math.max($('side').clientWidth - 38, 320);
      if (isDrawn($('runs'), JSON.stringify([runs, width, isRunning && now()]))) return;
      const wasOpen = $('runs').querySelector('details')?.open;
      $('runs').replaceChildren(timeline(runs, width), runTable(runs, wasOpen));
    }

    const durationOf = (run) => Math.max((run.ended ?? now()) - run.started, 0);
    const outcomeOf = (run) => run.ended === undefined ? 'running' : run.outcome || 'unknown';

    function timeline(runs, width) {
      const longest = Math.max(...runs.map(durationOf), 0.001);
      const [left, right, step] = [50, width < 480 ? 150 : Math.round(width * 0.52), 24];
      const height = runs.length * step + 30;
      const room = width - left - right - 12;
      const title = `${counted(runs.length, 'run')}, the newest first. ` +
        `The longest took ${exactDuration(longest)}.`;
      const image = svg('svg', {
        viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title,
      });
      for (const [index, share] of [0, 0.5, 1].entries()) {
        const x = left + share * room;
        image.append(svg('line', {
          x1: x, x2: x, y1: 22, y2: height - 6, stroke: 'var(--line)',
        }));
        image.append(svg('text', {
          x, y: 15, class: 'soft', 'text-anchor': ['start', 'middle', 'end'][index],
        }, share ? exactDuration(longest * share) : '0'));
      }
      runs.forEach((run, index) => image.append(bar(run, {
        left, room, longest, width, y: 26 + index * step,
      })));
      return image;
    }

    function bar(run, { left, room, longest, width, y }) {
      const group = svg('g');
      const scale = (seconds) => seconds / longest * room;
      const outcome = outcomeOf(run);
      const colour = { success: 'success', failure: 'failure', running: 'loading' }[outcome];
      const end = run.started + durationOf(run);
      group.append(svg('text', { x: 8, y: y + 14 }, `#${run.number}`));
      run.phases.forEach((phase, index) => {
        const next = run.phases[index + 1];
        const begin = Math.min(phase.begin, end) - run.started;
        const length = Math.max((next ? next.begin : end) - phase.begin, 0);
        group.append(svg('rect', {
          x: left + scale(begin), y: y + 3, width: Math.max(scale(length) - (next ? 1 : 0), 2),
          height: 14, rx: 2, class: `bar-${colour || 'cancelled'} phase-${phase.kind}`,
        }));
      });
      const text = `${outcome} ${exactDuration(durationOf(run))}`;
      const notes = notesOf(run);
      const label = svg('text', { x: left + room + 12, y: y + 14 });
      label.append(svg('tspan', { class: `sign-${colour || 'idle'}` }, text));
      const space = Math.floor((width - left - room - 20) / 7.3) - text.length - 2;
      if (notes && space > 4) {
        const short = notes.length > space ? `${notes.slice(0, space - 1)}…` : notes;
        label.append(svg('tspan', { class: 'soft', dx: 8 }, short));
      }
      const title = `run ${run.number}: ${text}${notes ? ` · ${notes}` : ''}`;
      group.append(svg('title', {}, title), label);
      return group;
    }

    function runTable(runs, isOpen) {
      const details = element('details');
      details.open = Boolean(isOpen);
      details.append(element('summary', 'The runs as a table'));
      const table = element('table');
      const head = element('tr');
      for (const title of ['Run', 'Outcome', 'Duration', 'Notes']) {
        const cell = element('th', title);
        cell.scope = 'col';
        head.append(cell);
      }
      table.append(head);
      for (const run of runs) {
        const row = element('tr');
        row.append(
          element('td', String(run.number)), element('td', outcomeOf(run)),
          element('td', exactDuration(durationOf(run))), element('td', notesOf(run)));
        table.append(row);
      }
      details.append(table);
      return details;
    }

    // The stores that are linked to a store directly or through others, or all that are linked.
    function linkedStores(start, limit) {
      const found = new Map();
      if (start === null) {
        for (const store of state.stores.values()) {
          if ((store.reads || []).length || (store.readBy || []).length) found.set(store.id, store);
          if (found.size >= limit) break;
        }
        return found;
      }
      const queue = [start];
      while (queue.length && found.size < limit) {
        const store = state.stores.get(queue.shift());
        if (!store || found.has(store.id)) continue;
        found.set(store.id, store);
        queue.push(...(store.reads || []), ...(store.readBy || []));
      }
      return found;
    }

    // Divides the stores into columns: each is to the right of those that it reads.
    function layers(found) {
      const depths = new Map();
      const depth = (id, path) => {
        if (depths.has(id)) return depths.get(id);
        if (path.has(id)) return 0;
        path.add(id);
        const reads = (found.get(id).reads || []).filter((other) => found.has(other));
        const value = reads.length ? Math.max(...reads.map((other) => depth(other, path))) + 1 : 0;
        path.delete(id);
        depths.set(id, value);
        return value;
      };
      const result = [];
      for (const id of found.keys()) {
        const column = depth(id, new Set());
        (result[column] ||= []).push(id);
      }
      return Array.from(result, (column) => column || []);
    }

    function drawGraph(node, current) {
      const limit = 60;
      const found = linkedStores(current, limit);
      const key = JSON.stringify([current, node.clientWidth, [...found.values()].map((store) =>
        [store.id, store.status, store.reads, nameOf(store)])]);
      if (isDrawn(node, key)) return;
      if (!found.size) {
        node.replaceChildren(element('p', 'No store reads another one.', 'idle'));
        return;
      }
      const focused = node.contains(document.activeElement)
        ? document.activeElement.dataset.store : null;
      node.replaceChildren(graph(found, current, Math.max(node.clientWidth, 320)));
      if (found.size >= limit) {
        node.append(element('p', `Only ${limit} stores are drawn.`, 'idle'));
      }
      if (focused) node.querySelector(`[data-store="${CSS.escape(focused)}"]`)?.focus();
    }

    function graph(found, current, room) {
      const columns = layers(found);
      const [step, high, gap] = [42, 28, 46];
      const wide = Math.max(Math.min((room - 24 + gap) / columns.length - gap, 260), 120);
      const width = Math.max(columns.length * (wide + gap) - gap + 24, room);
      const tallest = Math.max(...columns.map((column) => column.length));
      const height = tallest * step + 16;
      const image = svg('svg', {
        viewBox: `0 0 ${width} ${height}`, role: 'group',
        'aria-label': `Dependencies of ${counted(found.size, 'store')}: an arrow leads from a ` +
          'store to one that reads it',
      });
      const places = new Map();
      columns.forEach((column, x) => column.forEach((id, y) => places.set(id, {
        x: 12 + x * (wide + gap), y: (height - column.length * step) / 2 + y * step + 7,
      })));
      for (const [id, to] of places) {
        for (const other of found.get(id).reads || []) {
          const from = places.get(other);
          if (from) image.append(...edge(from, to, wide, high));
        }
      }
      for (const [id, place] of places) {
        image.append(graphNode(found.get(id), place, wide, high, id === current));
      }
      return image;
    }

    function edge(from, to, wide, high) {
      const [x1, y1, x2, y2] = [from.x + wide, from.y + high / 2, to.x, to.y + high / 2];
      const bend = Math.max(Math.abs(x2 - x1) / 2, 18);
      return [
        svg('path', {
          class: 'edge', d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2 - 7},${y2}`,
        }),
        svg('path', { class: 'arrow', d: `M${x2},${y2} l-8,-4 v8 z` }),
      ];
    }

    function graphNode(store, place, wide, high, isCurrent) {
      const kind = statusOf(store);
      const group = svg('g', {
        class: isCurrent ? 'node current' : 'node', tabindex: 0, role: 'button',
        'data-store': store.id, transform: `translate(${place.x},${place.y})`,
        'aria-label': `${nameOf(store)}, ${kind}`,
      });
      const room = Math.floor((wide - 34) / 7.3);
      const name = nameOf(store);
      const short = name.length > room ? `…${name.slice(1 - room)}` : name;
      group.append(
        svg('title', {}, `${name}\n${store.request}`),
        svg('rect', { width: wide, height: high, rx: 6 }),
        svg('text', { x: 9, y: high / 2 + 4, class: `sign-${kind}` }, signs[kind]),
        svg('text', { x: 26, y: high / 2 + 4 }, short));
      const open = () => reveal(store.id);
      group.addEventListener('click', open);
      group.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          event.stopPropagation();
          open();
        }
      });
      return group;
    }

    // Selects a store, and shows its row if it is in the table.
    function reveal(id) {
      const index = state.rows.findIndex((row) => row.store === id);
      if (index >= 0) activate(index); else select(id);
    }
    """#
}
