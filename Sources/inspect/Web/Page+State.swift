extension Page {
  /// What the page knows, and the rows of its tree.
  static let stateScript = #"""
    const $ = (id) => document.getElementById(id);
    const statuses = ['loading', 'paused', 'failure', 'success', 'idle'];
    const signs = { loading: '↻', paused: '‖', failure: '✗', success: '✓', idle: '·' };
    const state = {
      hello: null, stores: new Map(), counts: {}, timelines: new Map(), log: [], detail: null,
      selected: null, selectedPath: null, rows: [], active: -1, offset: 0, missed: 0,
      isOffline: false, connection: 'connecting', stream: null,
    };
    const options = {
      filter: '', statuses: new Set(), isStaleOnly: false, order: 'path', isReversed: false,
      isFlat: false, folded: new Set(),
    };

    // Elements whose contents are always text.
    function element(tag, text, className) {
      const node = document.createElement(tag);
      if (text !== undefined) node.textContent = text;
      if (className) node.className = className;
      return node;
    }

    const now = () => Date.now() / 1000 + state.offset;
    const nameOf = (store) => store.path.length ? store.path.join('/') : '(no path)';
    // A tree is no deeper than it can be drawn: the last element has the rest.
    const limited = (path) =>
      path.length > 64 ? [...path.slice(0, 63), path.slice(63).join('/')] : path;
    const keyOf = (path) => path.join('\u0000');
    const counted = (count, noun) => count === 1 ? `1 ${noun}` : `${count} ${noun}s`;

    function lastResult(store) {
      const times = [store.updated, store.failed].filter((time) => typeof time === 'number');
      return times.length ? Math.max(...times) : null;
    }

    function shortDuration(seconds) {
      if (seconds < 1) return 'now';
      if (seconds < 60) return `${Math.floor(seconds)}s`;
      if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
      if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
      return `${Math.floor(seconds / 86400)}d`;
    }

    function exactDuration(seconds) {
      if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
      return seconds < 99.95 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds)} s`;
    }

    function statusOf(store) {
      return statuses.includes(store.status) ? store.status : 'idle';
    }

    function matches(store, words) {
      if (options.statuses.size && !options.statuses.has(statusOf(store))) return false;
      if (options.isStaleOnly && !(store.isStale && lastResult(store) !== null)) return false;
      if (!words.length) return true;
      const freshness = lastResult(store) === null ? '' : store.isStale ? 'stale' : 'fresh';
      const text = `${nameOf(store)} ${store.request} ${store.kind} ${store.status} ${freshness} ` +
        `${store.error || ''}`;
      const lower = text.toLowerCase();
      return words.every((word) => lower.includes(word));
    }

    function sortNumber(store) {
      const number = {
        path: 0, status: statuses.indexOf(statusOf(store)), age: -(lastResult(store) || 0),
        runs: -store.runs, subscribers: -store.subscribers, leases: -store.leases,
        error: store.error ? 0 : 1, freshness: store.isStale ? 0 : 1,
      }[options.order] || 0;
      return options.isReversed ? -number : number;
    }

    function compareElements(left, right) {
      const isNumber = [/^-?\d+$/.test(left), /^-?\d+$/.test(right)];
      if (isNumber[0] && isNumber[1]) return Number(left) - Number(right);
      if (isNumber[0] !== isNumber[1]) return isNumber[0] ? -1 : 1;
      return left < right ? -1 : left > right ? 1 : 0;
    }

    function comparePaths(left, right) {
      for (let index = 0; index < Math.min(left.length, right.length); index++) {
        const order = compareElements(left[index], right[index]);
        if (order) return order;
      }
      return left.length - right.length;
    }

    const isBackwards = () => options.isReversed && options.order === 'path' ? -1 : 1;

    function buildRows() {
      const words = options.filter.toLowerCase().split(' ').filter(Boolean);
      const kept = [...state.stores.values()].filter((store) => matches(store, words));
      const selected = state.rows[state.active];
      state.rows = options.isFlat ? flatRows(kept) : treeRows(kept);
      if (selected) {
        const index = state.rows.findIndex((row) =>
          selected.store !== null ? row.store === selected.store : row.key === selected.key);
        if (index >= 0) state.active = index;
      }
      state.active = Math.min(state.active, state.rows.length - 1);
    }

    function flatRows(kept) {
      const keyed = kept.map((store) => ({ store, number: sortNumber(store) }));
      keyed.sort((left, right) => left.number - right.number ||
        isBackwards() * comparePaths(left.store.path, right.store.path));
      return keyed.map(({ store }) => ({
        key: keyOf(store.path), label: nameOf(store), depth: 0, store: store.id, below: 0,
        isFolded: false,
      }));
    }

    function treeRows(kept) {
      const root = { element: '', stores: [], number: Infinity, count: 0, children: new Map() };
      for (const store of kept) {
        const number = sortNumber(store);
        let node = root;
        for (const element of [...limited(store.path), null]) {
          node.count += 1;
          node.number = Math.min(node.number, number);
          if (element === null) break;
          let child = node.children.get(element);
          if (!child) {
            child = { element, stores: [], number: Infinity, count: 0, children: new Map() };
            node.children.set(element, child);
          }
          node = child;
        }
        node.stores.push(store.id);
      }
      const rows = [];
      appendRows(rows, root, [], 0, '');
      return rows;
    }

    // A group with a single child and no store of its own shares the row of that child.
    function appendRows(rows, node, path, depth, label) {
      if (!node.stores.length && node.children.size === 1) {
        const child = node.children.values().next().value;
        const joined = path.length ? `${label}/${child.element}` : child.element;
        return appendRows(rows, child, [...path, child.element], depth, joined);
      }
      const isRoot = !path.length && !node.stores.length;
      const key = keyOf(path);
      const isFolded = !isRoot && !options.filter && options.folded.has(key);
      if (!isRoot) {
        const own = node.stores.length ? node.stores : [null];
        own.forEach((store, index) => {
          const below = index === own.length - 1 ? node.count - node.stores.length : 0;
          rows.push({
            key, label: path.length ? label : '(no path)', depth, store, below,
            isFolded: isFolded && below > 0,
          });
        });
      }
      if (isFolded) return;
      const children = [...node.children.values()];
      children.sort((left, right) => left.number - right.number ||
        isBackwards() * compareElements(left.element, right.element));
      for (const child of children) {
        appendRows(rows, child, [...path, child.element], isRoot ? 0 : depth + 1, child.element);
      }
    }

    // The runs of a store, from the events.
    function applyEvent(event) {
      let line = state.timelines.get(event.store);
      if (!line) state.timelines.set(event.store, line = { runs: [], hits: 0 });
      if (event.kind === 'hit') line.hits += 1;
      const last = line.runs[line.runs.length - 1];
      const number = event.run ?? (last ? last.number : null);
      const isKnown = line.runs.some((run) => run.number === number);
      // A run of which only an attempt is seen began before the page connected.
      if (event.kind === 'runStarted' || (event.kind === 'attempt' && event.run && !isKnown)) {
        line.runs.push({
          number: event.run ?? (last ? last.number + 1 : 1), started: event.time,
          cause: event.cause, attempts: (event.attempt ?? 0) + 1, joins: 0, yields: 0, pages: 0,
          phases: [{ kind: 'working', begin: event.time }],
        });
        if (line.runs.length > 50) line.runs.shift();
        return;
      }
      const run = line.runs.findLast((run) => run.number === number);
      if (!run) return;
      const enter = (kind) => {
        if (run.phases[run.phases.length - 1].kind !== kind) {
          run.phases.push({ kind, begin: event.time });
        }
      };
      switch (event.kind) {
        case 'attempt':
          run.attempts = Math.max(run.attempts, (event.attempt ?? 0) + 1);
          enter('working');
          break;
        case 'waiting': enter('waiting'); break;
        case 'paused': enter('paused'); break;
        case 'pageBegan': enter('working'); break;
        case 'pageEnded': run.pages += 1; break;
        case 'yielded': run.yields += 1; break;
        case 'joined': run.joins += 1; break;
        case 'runEnded':
          run.ended = event.time;
          run.outcome = event.outcome;
          run.message = event.message;
          break;
      }
    }

    function notesOf(run) {
      const notes = [];
      if (run.cause) notes.push(run.cause);
      if (run.attempts > 1) notes.push(`${run.attempts} attempts`);
      if (run.joins) notes.push(counted(run.joins, 'join'));
      if (run.yields) notes.push(counted(run.yields, 'yield'));
      if (run.pages) notes.push(counted(run.pages, 'page'));
      if (run.message) notes.push(run.message);
      return notes.join(' · ');
    }

    function eventText(event) {
      const run = event.run == null ? 'run' : `run ${event.run}`;
      const note = event.message ? `: ${event.message}` : '';
      switch (event.kind) {
        case 'runStarted': return `${run} started${event.cause ? ` (${event.cause})` : ''}`;
        case 'attempt': return `${run} attempt ${(event.attempt ?? 0) + 1}${note}`;
        case 'waiting': return `${run} waits${note}`;
        case 'paused': return `${run} paused${note}`;
        case 'yielded': return `${run} yielded${note}`;
        case 'pageBegan': return `${run} began a page${note}`;
        case 'pageEnded': return `${run} ended a page${note}`;
        case 'runEnded': return `${run} ended: ${event.outcome || 'unknown outcome'}${note}`;
        case 'joined': return `${run} joined`;
        default: return `${event.kind}${note}`;
      }
    }
    """#
}
