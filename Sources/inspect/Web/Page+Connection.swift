extension Page {
  /// The stream of messages, the keys, and the start.
  static let connectionScript = #"""
    const token = new URLSearchParams(location.search).get('token');
    let wanted = '';
    try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { /* It is no name. */ }
    const dirty = { list: false, detail: false, isScheduled: false };

    function schedule(list, detail) {
      dirty.list ||= list;
      dirty.detail ||= detail;
      if (dirty.isScheduled) return;
      dirty.isScheduled = true;
      requestAnimationFrame(() => {
        dirty.isScheduled = false;
        if (dirty.list) {
          buildRows();
          drawChips();
        }
        drawRows();
        drawHeader();
        if (dirty.detail) drawDetail();
        dirty.list = dirty.detail = false;
      });
    }

    function receive(message) {
      switch (message.type) {
        case 'stream':
          Object.assign(state, { stream: message.id, isGreeted: false, isRefused: false });
          break;
        case 'hello':
          begin(message);
          break;
        case 'snapshot':
          state.stores = new Map(message.stores.map((store) => [store.id, store]));
          state.counts = message.counts || {};
          schedule(true, true);
          restoreSelection();
          break;
        case 'changes': receiveChanges(message); break;
        case 'detail':
          state.detail = message.store;
          schedule(false, true);
          break;
        case 'reply': {
          const text = pending.get(message.id);
          pending.delete(message.id);
          if (text) toast(`${text}: ${message.ok ? 'done' : message.error}`);
          break;
        }
        case 'bye':
          // In place of a greeting it is a refusal, and the program goes on.
          state.isRefused = !state.isGreeted;
          end(message.reason || '', state.isRefused ? '' : undefined);
          break;
        case 'ended':
          if (!state.isRefused) end(message.waits ? 'Waiting for its next start.' : '');
          break;
      }
    }

    function begin(hello) {
      Object.assign(state, {
        hello, stores: new Map(), counts: {}, timelines: new Map(), log: [], detail: null,
        missed: 0, isOffline: Boolean(hello.isOffline), connection: 'live', isGreeted: true,
        offset: hello.now - Date.now() / 1000,
      });
      $('banner').hidden = true;
      schedule(true, true);
    }

    function end(reason, beginning = 'The program has ended. ') {
      const isSecond = state.connection === 'ended' && !$('banner').hidden;
      state.connection = 'ended';
      if (!isSecond || reason) setText($('banner'), beginning + reason);
      $('banner').hidden = false;
      schedule(false, true);
    }

    // A store of the next start has another identifier, but the same path.
    function restoreSelection() {
      const find = (test) => [...state.stores.values()].find(test);
      const store = state.selectedPath !== null
        ? find((store) => keyOf(store.path) === state.selectedPath)
        : wanted ? find((store) => nameOf(store) === wanted) : null;
      wanted = '';
      state.selected = null;
      buildRows();
      if (store) reveal(store.id);
    }

    function receiveChanges(message) {
      const names = new Map();
      const isVisible = state.selected === null;
      let isLinked = false;
      for (const store of message.stores || []) {
        state.stores.set(store.id, store);
        isLinked ||= store.id === state.selected || (store.reads || []).length > 0;
      }
      for (const event of message.events || []) {
        const store = state.stores.get(event.store);
        names.set(event.store, store ? nameOf(store) : `store ${event.store}`);
        if (store) applyEvent(event);
        state.log.push({ event, name: names.get(event.store) });
        isLinked ||= event.store === state.selected;
      }
      if (state.log.length > 200) state.log.splice(0, state.log.length - 200);
      for (const id of message.removed || []) {
        state.stores.delete(id);
        state.timelines.delete(id);
        isLinked ||= id === state.selected;
      }
      state.counts = message.counts || state.counts;
      state.missed += message.missed || 0;
      state.isOffline = Boolean(message.isOffline);
      const hasStores = (message.stores || []).length + (message.removed || []).length > 0;
      schedule(hasStores, isVisible || isLinked);
    }

    function press(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = event.target === $('search');
      if (event.key === 'Escape') {
        if (isTyping && options.filter) {
          $('search').value = options.filter = '';
          changeOptions();
        } else {
          select(null);
          $('grid').focus();
        }
        return;
      }
      if (isTyping) {
        if (event.key === 'ArrowDown' || event.key === 'Enter') {
          event.preventDefault();
          $('grid').focus();
          activate(0);
        }
        return;
      }
      if (event.key === '/') {
        event.preventDefault();
        $('search').focus();
        return;
      }
      const operation = operations.find(([, key]) => key === event.key);
      if (operation) perform(operation[0]);
    }

    function setTheme(theme) {
      document.documentElement.dataset.theme = theme;
      $('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
    }

    function listen() {
      $('grid').addEventListener('keydown', pressInGrid);
      $('grid').addEventListener('focus', () => drawRows());
      document.addEventListener('keydown', press);
      $('body').addEventListener('scroll', () => drawRows(), { passive: true });
      new ResizeObserver(() => schedule(false, true)).observe(document.body);
      $('search').addEventListener('input', (event) => {
        options.filter = event.target.value;
        changeOptions();
      });
      $('flat').addEventListener('click', () => {
        options.isFlat = !options.isFlat;
        $('flat').setAttribute('aria-pressed', String(!options.isFlat));
        changeOptions();
      });
      $('offline').addEventListener('click', () =>
        command({ command: 'offline', offline: !state.isOffline },
          state.isOffline ? 'go online' : 'go offline'));
      const isDark = () => document.documentElement.dataset.theme
        ? document.documentElement.dataset.theme === 'dark'
        : matchMedia('(prefers-color-scheme: dark)').matches;
      const nameTheme = () => setText($('theme'), isDark() ? 'Light' : 'Dark');
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', nameTheme);
      nameTheme();
      $('theme').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
      // Ages change each second.
      setInterval(() => schedule(false, state.selected !== null), 1000);
    }

    function connect() {
      const events = new EventSource(`/events?token=${token}`);
      events.onmessage = (event) => receive(JSON.parse(event.data));
      events.onerror = () => {
        state.stream = null;
        end(events.readyState === EventSource.CLOSED
          ? 'The inspector refuses the connection.' : 'The inspector does not answer.');
      };
    }

    makeHeads();
    makeChips();
    makeActions();
    listen();
    changeOptions();
    connect();
    $('grid').focus();
    """#
}
