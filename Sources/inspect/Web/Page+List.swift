extension Page {
  /// The table: it draws only the rows that are visible.
  static let listScript = #"""
    const rowHeight = 28;
    const columns = [
      ['path', 'Path'], ['status', 'Status'], ['age', 'Age', 'number'],
      ['freshness', 'Fresh'], ['subscribers', 'Sub', 'number', 'Subscribers'],
      ['leases', 'Await', 'number', 'Awaiters'], ['runs', 'Runs', 'number', 'Runs in flight'],
      ['error', 'Last error'],
    ];
    const pool = [];

    function makeHeads() {
      columns.forEach(([order, title, className, longTitle]) => {
        const cell = element('div', undefined, className);
        cell.setAttribute('role', 'columnheader');
        const button = element('button', title);
        button.tabIndex = -1;
        button.title = `Sort by ${(longTitle || title).toLowerCase()}`;
        button.setAttribute('aria-label', longTitle || title);
        button.addEventListener('click', () => {
          options.isReversed = options.order === order && !options.isReversed;
          options.order = order;
          changeOptions();
        });
        cell.append(button);
        $('heads').append(cell);
      });
    }

    function drawHeads() {
      [...$('heads').children].forEach((cell, index) => {
        const isCurrent = columns[index][0] === options.order;
        const order = options.isReversed ? 'descending' : 'ascending';
        cell.setAttribute('aria-sort', isCurrent ? order : 'none');
        const mark = isCurrent && (options.order !== 'path' || options.isReversed);
        cell.firstChild.textContent =
          columns[index][1] + (mark ? (options.isReversed ? ' ↑' : ' ↓') : '');
      });
    }

    function makeRow() {
      const row = element('div', undefined, 'row');
      row.setAttribute('role', 'row');
      columns.forEach(([, , className], index) => {
        const cell = element('div', undefined, index === 0 ? 'path' : className);
        cell.setAttribute('role', index === 0 ? 'rowheader' : 'gridcell');
        row.append(cell);
      });
      const [path, status] = row.children;
      path.append(element('span', '', 'fold'), element('span', ''));
      status.append(element('span', '', 'sign'), element('span', ''));
      path.firstChild.addEventListener('click', (event) => {
        event.stopPropagation();
        const item = state.rows[Number(row.dataset.index)];
        if (item && item.below) setFolded(item, !item.isFolded);
      });
      row.addEventListener('click', () => activate(Number(row.dataset.index)));
      $('body').append(row);
      return row;
    }

    function drawRows() {
      const body = $('body');
      const first = Math.max(Math.floor(body.scrollTop / rowHeight) - 4, 0);
      const count = Math.ceil(body.clientHeight / rowHeight) + 8;
      const last = Math.min(first + count, state.rows.length);
      $('filler').style.height = `${state.rows.length * rowHeight}px`;
      $('grid').setAttribute('aria-rowcount', String(state.rows.length + 1));
      while (pool.length < last - first) pool.push(makeRow());
      // An index always has the same element, as long as it is visible: a screen reader follows it.
      const used = new Set();
      for (let index = first; index < last; index++) {
        const row = pool[index % pool.length];
        used.add(row);
        drawRow(row, index);
      }
      for (const row of pool) if (!used.has(row)) row.hidden = true;
      const active = pool.find((row) => !row.hidden && row.dataset.index === String(state.active));
      if (active) $('grid').setAttribute('aria-activedescendant', active.id);
      else $('grid').removeAttribute('aria-activedescendant');
      $('empty').hidden = state.rows.length > 0;
      $('empty').textContent = state.stores.size
        ? 'No store matches the search.' : 'There is no store yet.';
    }

    function setText(node, text) { if (node.textContent !== text) node.textContent = text; }
    function setClass(node, name) { if (node.className !== name) node.className = name; }

    function drawRow(row, index) {
      const item = state.rows[index];
      const store = item.store === null ? null : state.stores.get(item.store);
      row.hidden = false;
      row.dataset.index = String(index);
      row.id = `row-${index}`;
      row.style.top = `${index * rowHeight}px`;
      row.setAttribute('aria-rowindex', String(index + 2));
      row.setAttribute('aria-level', String(item.depth + 1));
      row.setAttribute('aria-selected', String(index === state.active));
      if (item.below) row.setAttribute('aria-expanded', String(!item.isFolded));
      else row.removeAttribute('aria-expanded');
      setClass(row, store ? 'row' : 'row group');
      const [path, status, age, freshness, subscribers, leases, runs, error] = row.children;
      path.style.paddingLeft = `${Math.min(item.depth, 16) * 16}px`;
      setText(path.firstChild, item.below ? (item.isFolded ? '▸' : '▾') : '');
      const suffix = item.isFolded ? ` (${item.below})` : '';
      setText(path.lastChild, item.label + suffix);
      path.title = store ? nameOf(store) : item.label;
      if (!store) {
        setText(status.firstChild, '');
        setText(status.lastChild, '');
        for (const cell of [age, freshness, subscribers, leases, runs, error]) setText(cell, '');
        return;
      }
      const kind = statusOf(store);
      setClass(status, kind);
      setText(status.firstChild, signs[kind]);
      setText(status.lastChild, ` ${kind}`);
      const result = lastResult(store);
      setText(age, result === null ? '–' : shortDuration(now() - result));
      setText(freshness, result === null ? '–' : store.isStale ? 'stale' : 'fresh');
      setClass(freshness, result !== null && store.isStale ? 'stale' : '');
      for (const [cell, number] of [
        [subscribers, store.subscribers], [leases, store.leases], [runs, store.runs],
      ]) {
        setText(cell, String(number));
        setClass(cell, number ? 'number' : 'number zero');
      }
      setClass(error, 'failure');
      setText(error, store.error || '');
      error.title = store.error || '';
    }

    function setFolded(item, isFolded) {
      if (isFolded) options.folded.add(item.key); else options.folded.delete(item.key);
      changeOptions();
    }

    function changeOptions() {
      buildRows();
      drawHeads();
      drawRows();
    }

    function showActive() {
      const body = $('body');
      const top = state.active * rowHeight;
      if (top < body.scrollTop) body.scrollTop = top;
      const bottom = top + rowHeight - body.clientHeight;
      if (bottom > body.scrollTop) body.scrollTop = bottom;
      drawRows();
    }

    // Makes a row the current one, and opens its store.
    function activate(index) {
      state.active = Math.max(Math.min(index, state.rows.length - 1), 0);
      showActive();
      const row = state.rows[state.active];
      select(row ? row.store : null);
    }

    function pressInGrid(event) {
      const row = state.rows[state.active];
      const page = Math.max(Math.floor($('body').clientHeight / rowHeight) - 1, 1);
      switch (event.key) {
        case 'ArrowDown': case 'j': activate(state.active + 1); break;
        case 'ArrowUp': case 'k': activate(state.active - 1); break;
        case 'PageDown': activate(state.active + page); break;
        case 'PageUp': activate(state.active - page); break;
        case 'Home': case 'g': activate(0); break;
        case 'End': case 'G': activate(state.rows.length - 1); break;
        case 'ArrowRight': if (row && row.below && row.isFolded) setFolded(row, false); break;
        case 'ArrowLeft':
          if (row && row.below && !row.isFolded && !options.filter) setFolded(row, true);
          else if (row) {
            const parent = state.rows.findLastIndex((other, index) =>
              index < state.active && other.depth < row.depth);
            if (parent >= 0) activate(parent);
          }
          break;
        case ' ': if (row && row.below) setFolded(row, !row.isFolded); break;
        case 'Enter': activate(state.active); break;
        default: return;
      }
      event.preventDefault();
    }
    function makeChips() {
      for (const status of [...statuses, 'stale']) {
        const button = element('button', undefined, status);
        button.dataset.status = status;
        button.setAttribute('aria-pressed', 'false');
        button.addEventListener('click', () => {
          if (status === 'stale') options.isStaleOnly = !options.isStaleOnly;
          else if (!options.statuses.delete(status)) options.statuses.add(status);
          changeOptions();
          drawChips();
        });
        $('chips').append(button);
      }
    }

    function drawChips() {
      const counts = { loading: 0, paused: 0, failure: 0, success: 0, idle: 0, stale: 0 };
      for (const store of state.stores.values()) {
        counts[statusOf(store)] += 1;
        if (store.isStale && lastResult(store) !== null) counts.stale += 1;
      }
      for (const button of $('chips').children) {
        const status = button.dataset.status;
        const isPressed = status === 'stale' ? options.isStaleOnly : options.statuses.has(status);
        button.setAttribute('aria-pressed', String(isPressed));
        setText(button, `${signs[status] || '~'} ${counts[status]} ${status}`);
      }
    }
    """#
}
