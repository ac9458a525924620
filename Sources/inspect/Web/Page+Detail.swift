extension Page {
  /// The header, and the detail of the selected store.
  static let detailScript = #"""
    const operations = [
      ['refetch', 'r', 'Start a run'],
      ['invalidate', 'i', 'Mark as stale, and run where it is observed'],
      ['cancel', 'x', 'Cancel the runs in flight'],
      ['reset', 'R', 'Reset to the initial state'],
      ['clear', 'C', 'Remove the store from its client'],
    ];
    const countNames = [
      'hits', 'joins', 'runs', 'failures', 'cancellations', 'retries', 'evictions',
    ];

    function makeActions() {
      for (const [name, key, title] of operations) {
        const button = element('button', name[0].toUpperCase() + name.slice(1));
        button.id = `do-${name}`;
        button.title = `${title} (${key})`;
        button.addEventListener('click', () => perform(name));
        $('actions').append(button);
      }
    }

    function drawHeader() {
      const { hello } = state;
      if (hello) {
        const title = hello.name ? `${hello.program} · ${hello.name}` : hello.program;
        setText($('title'), title);
        document.title = `${title} – inspect`;
        const up = Math.max(now() - hello.started, 0);
        const pad = (number) => String(Math.floor(number)).padStart(2, '0');
        const hours = up >= 3600 ? `${Math.floor(up / 3600)}:` : '';
        const clock = `${hours}${pad(up / 60 % 60)}:${pad(up % 60)}`;
        const missed = state.missed ? ` · ${state.missed} changes left out` : '';
        setText($('facts'),
          `pid ${hello.pid} · up ${clock} · ${counted(state.stores.size, 'store')}${missed}`);
      }
      const isLive = state.connection === 'live';
      const offline = isLive && state.isOffline;
      const access = hello && hello.readOnly ? 'read-only · ' : '';
      setText($('live'), offline ? '◌ as if offline'
        : isLive ? `${access}● live` : state.connection === 'ended' ? 'ended' : 'connecting');
      $('live').dataset.state = offline ? 'offline' : state.connection;
      const canCommand = isLive && hello && !hello.readOnly;
      $('offline').hidden = !(hello && hello.canGoOffline);
      $('offline').disabled = !canCommand;
      $('offline').setAttribute('aria-pressed', String(state.isOffline));
      for (const button of $('actions').children) {
        button.disabled = !canCommand || !state.stores.has(state.selected);
      }
      drawCounts();
    }

    function drawCounts() {
      const list = $('counts');
      if (!list.children.length) {
        for (const name of countNames) {
          const pair = element('div');
          pair.append(element('dt', name), element('dd', '0'));
          list.append(pair);
        }
      }
      countNames.forEach((name, index) => {
        const value = list.children[index].lastChild;
        setText(value, String(state.counts[name] || 0));
        setClass(value, name === 'failures' && state.counts[name] ? 'failure' : '');
      });
    }

    // Opens a store, or the overview.
    function select(id) {
      if (state.selected === id) return;
      state.selected = id;
      state.detail = null;
      const store = state.stores.get(id);
      state.selectedPath = store ? keyOf(store.path) : null;
      if (store) command({ command: 'watch', store: id });
      else command({ command: 'unwatch' });
      history.replaceState(null, '', store ? `#${encodeURIComponent(nameOf(store))}` : '#');
      $('side').scrollTop = 0;
      drawRows();
      drawDetail();
      drawHeader();
    }

    function drawDetail() {
      const isWatched = state.detail && state.detail.id === state.selected;
      // The newest state comes with the changes, before the detail.
      const store = state.stores.get(state.selected) || (isWatched ? state.detail : null);
      $('detail').hidden = state.selected === null;
      $('overview').hidden = state.selected !== null;
      if (state.selected === null) return drawOverview();
      if (!store) return;
      setText($('name'), nameOf(store));
      const isRemoved = !state.stores.has(state.selected);
      setText($('request'),
        `${store.request} · ${store.kind}${isRemoved ? ' · no longer in its client' : ''}`);
      drawStatus(store, isWatched ? state.detail : {});
      $('error-part').hidden = !store.error;
      setText($('error'), store.error || '');
      const full = isWatched ? state.detail : store;
      setText($('value'), full.value || '–');
      $('truncated').hidden = !(isWatched && state.detail.isTruncated);
      drawRules(isWatched ? state.detail.rules || [] : []);
      drawCalls(isWatched ? state.detail.calls || [] : []);
      drawRuns(store);
      const linked = (store.reads || []).length + (store.readBy || []).length;
      $('graph-part').hidden = !linked;
      if (linked) drawGraph($('graph'), store.id);
    }

    function drawStatus(store, detail) {
      const kind = statusOf(store);
      const result = lastResult(store);
      const parts = [element('span', `${signs[kind]} ${kind}`, kind)];
      if (result !== null) {
        const age = shortDuration(now() - result);
        parts.push(store.isStale ? element('span', 'stale', 'stale') : element('span', 'fresh'));
        parts.push(element('span', `last result ${age === 'now' ? 'now' : `${age} ago`}`));
      }
      if (store.edits) {
        parts.push(element('span', counted(store.edits, 'optimistic edit'), 'paused'));
      }
      if (store.queued) {
        parts.push(element('span', `${counted(store.queued, 'call')} in queue`, 'paused'));
      }
      if (detail.pages != null) parts.push(element('span', counted(detail.pages, 'page')));
      replace($('status'), parts);
      const line = state.timelines.get(store.id);
      replace($('numbers'), [
        counted(store.subscribers, 'subscriber'), counted(store.leases, 'awaiter'),
        `${counted(store.runs, 'run')} in flight`, counted(store.valueUpdates || 0, 'value'),
        counted(store.errorUpdates || 0, 'error'), counted(line ? line.hits : 0, 'hit'),
      ].map((text) => element('span', text)));
    }

    // Replaces the children only where their text differs, which a screen reader would read again.
    function replace(node, children) {
      const text = (list) =>
        [...list].map((child) => child.className + child.textContent).join('\n');
      if (text(node.children) !== text(children)) node.replaceChildren(...children);
    }

    function drawRules(rules) {
      $('rules-part').hidden = !rules.length;
      replace($('rules'), rules.flatMap((rule) =>
        [element('dt', rule.name), element('dd', rule.value)]));
    }

    function drawCalls(calls) {
      $('calls-part').hidden = !calls.length;
      replace($('calls'), calls.slice(-20).reverse().map((call) => {
        const row = element('tr');
        const className = statuses.includes(call.status) ? call.status : '';
        row.append(element('td', call.status, className), element('td', call.arguments));
        return row;
      }));
    }

    function drawOverview() {
      drawGraph($('graph-all'), null);
      replace($('log'), state.log.slice(-40).reverse().map((entry) => {
        const item = element('li');
        const time = new Date(entry.event.time * 1000);
        const outcome = entry.event.kind === 'runEnded' ? entry.event.outcome : '';
        item.append(
          element('time', time.toTimeString().slice(0, 8)), ` ${entry.name} `,
          element('span', eventText(entry.event),
            ['success', 'failure'].includes(outcome) ? outcome : ''));
        return item;
      }));
    }

    let lastCommand = 0;
    const pending = new Map();

    // Sends a command to the program after those before; its reply comes with the events.
    let sent = Promise.resolve();
    function command(fields, text) { sent = sent.then(() => send(fields, text)); }

    async function send(fields, text) {
      if (state.connection !== 'live' || state.stream === null) return;
      const id = ++lastCommand;
      if (text) pending.set(id, text);
      const address = `/command?token=${token}&stream=${state.stream}`;
      try {
        const response = await fetch(address, {
          method: 'POST', headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ id, ...fields }),
        });
        if (!response.ok && text) toast(`${text}: the inspector does not take it.`);
      } catch {
        if (text) toast(`${text}: the inspector does not answer.`);
      }
    }

    function perform(name) {
      const store = state.stores.get(state.selected);
      if (!store) return toast('Select a store first.');
      if (state.hello && state.hello.readOnly) return toast('The inspector is read-only.');
      command({ command: name, store: store.id }, `${name} ${nameOf(store)}`);
    }

    function toast(text) { setText($('toast'), text); }
    """#
}
