extension Page {
  static let style = #"""
    :root {
      --back: #f6f7f9; --panel: #ffffff; --line: #d9dde4; --text: #1b1f26; --soft: #59626f;
      --accent: #2f5fd0; --select: #e4ecff; --hover: #f0f3f8;
      --success: #1a7437; --failure: #b81f2c; --loading: #0a6a7c; --paused: #7d35a6;
      --stale: #805a00; --mono: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
    }
    @media (prefers-color-scheme: dark) {
      :root:not([data-theme="light"]) {
        --back: #101318; --panel: #171b21; --line: #2b313b; --text: #e3e7ee; --soft: #98a2b1;
        --accent: #86a8ff; --select: #22304f; --hover: #1e242d;
        --success: #6cc985; --failure: #f2848b; --loading: #59c2d6; --paused: #cf94e6;
        --stale: #e2b857; color-scheme: dark;
      }
    }
    :root[data-theme="dark"] {
      --back: #101318; --panel: #171b21; --line: #2b313b; --text: #e3e7ee; --soft: #98a2b1;
      --accent: #86a8ff; --select: #22304f; --hover: #1e242d;
      --success: #6cc985; --failure: #f2848b; --loading: #59c2d6; --paused: #cf94e6;
      --stale: #e2b857; color-scheme: dark;
    }
    :root[data-theme="light"] { color-scheme: light; }
    * { box-sizing: border-box; }
    html, body { height: 100%; margin: 0; }
    body {
      display: flex; flex-direction: column; background: var(--back); color: var(--text);
      font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif;
    }
    h1 { font-size: 17px; margin: 0; }
    h2 { font-size: 16px; margin: 0; font-family: var(--mono); overflow-wrap: anywhere; }
    h3 {
      font-size: 12px; margin: 20px 0 6px; color: var(--soft); text-transform: uppercase;
      letter-spacing: .05em;
    }
    header {
      display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; padding: 10px 16px;
      background: var(--panel); border-bottom: 1px solid var(--line);
    }
    header .facts { color: var(--soft); }
    header .end { margin-left: auto; display: flex; gap: 8px; align-items: center; }
    .counts { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0; }
    .counts div { display: flex; gap: 5px; align-items: baseline; }
    .counts dt { color: var(--soft); }
    .counts dd { margin: 0; font-variant-numeric: tabular-nums; font-weight: 600; }
    .banner { padding: 8px 16px; background: var(--failure); color: var(--panel); }
    .live { font-weight: 600; color: var(--success); white-space: nowrap; }
    .live[data-state="ended"] { color: var(--failure); }
    .live[data-state="offline"] { color: var(--paused); }
    main {
      flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 11fr) minmax(0, 9fr);
    }
    button, select, input {
      font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
      border-radius: 6px; padding: 4px 10px;
    }
    button { cursor: pointer; }
    button:hover:not(:disabled) { background: var(--hover); border-color: var(--soft); }
    button:disabled { opacity: .5; cursor: default; }
    button[aria-pressed="true"] { background: var(--select); border-color: var(--accent); }
    :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
    .stores {
      display: flex; flex-direction: column; min-height: 0; border-right: 1px solid var(--line);
    }
    .tools { display: flex; flex-wrap: wrap; gap: 8px; padding: 10px 16px; }
    .tools input { flex: 1; min-width: 160px; }
    .chips { display: flex; flex-wrap: wrap; gap: 6px; padding: 0 16px 10px; }
    .chips button { border-radius: 14px; padding: 1px 10px; font-size: 13px; }
    .grid {
      flex: 1; min-height: 0; display: flex; flex-direction: column; background: var(--panel);
      border-top: 1px solid var(--line);
    }
    .grid:focus-visible { outline: none; }
    .grid:focus-visible .heads { box-shadow: inset 0 2px var(--accent); }
    .grid:focus-visible .row[aria-selected="true"] {
      outline: 2px solid var(--accent); outline-offset: -2px;
    }
    .row {
      display: grid; align-items: center; height: 28px; padding: 0 16px; column-gap: 12px;
      grid-template-columns: minmax(140px, 1fr) 84px 38px 44px 32px 44px 36px minmax(0, .7fr);
      white-space: nowrap;
    }
    .row > * { overflow: hidden; text-overflow: ellipsis; line-height: 27px; }
    .heads {
      border-bottom: 1px solid var(--line); color: var(--soft); font-size: 12px;
      scrollbar-gutter: stable; overflow: hidden;
    }
    .heads button { all: unset; cursor: pointer; }
    .heads button:focus-visible { outline: 2px solid var(--accent); }
    .heads [aria-sort]:not([aria-sort="none"]) button { color: var(--text); font-weight: 700; }
    .body {
      flex: 1; min-height: 0; overflow-y: auto; scrollbar-gutter: stable; position: relative;
    }
    .body .row { position: absolute; left: 0; right: 0; cursor: default; }
    .body .row:hover { background: var(--hover); }
    .body .row[aria-selected="true"] {
      background: var(--select); box-shadow: inset 3px 0 var(--accent);
    }
    .path { font-family: var(--mono); font-size: 13px; }
    .fold { display: inline-block; width: 16px; color: var(--soft); }
    .group .path { color: var(--soft); }
    .number { text-align: right; font-variant-numeric: tabular-nums; }
    .zero { color: var(--soft); }
    .success { color: var(--success); } .failure { color: var(--failure); }
    .loading { color: var(--loading); } .paused { color: var(--paused); }
    .idle { color: var(--soft); } .stale { color: var(--stale); }
    .side { overflow: auto; padding: 14px 18px 40px; }
    .side .request { color: var(--soft); margin: 2px 0 10px; }
    .actions { display: flex; flex-wrap: wrap; gap: 8px; margin: 10px 0; }
    .facts-line { display: flex; flex-wrap: wrap; gap: 4px 14px; }
    pre {
      margin: 0; padding: 10px 12px; background: var(--panel); border: 1px solid var(--line);
      border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 260px;
      overflow: auto; font: 13px/1.5 var(--mono);
    }
    .rules { display: grid; grid-template-columns: max-content 1fr; gap: 3px 16px; margin: 0; }
    .rules dt { color: var(--soft); }
    .rules dd { margin: 0; font-family: var(--mono); font-size: 13px; }
    .plain { list-style: none; margin: 0; padding: 0; }
    .log { font: 12.5px/1.6 var(--mono); }
    .log time { color: var(--soft); }
    svg {
      display: block; width: 100%; background: var(--panel); border: 1px solid var(--line);
      border-radius: 6px;
    }
    svg text { fill: var(--text); font: 12px var(--mono); }
    svg .soft { fill: var(--soft); }
    svg .bar-success { fill: var(--success); } svg .bar-failure { fill: var(--failure); }
    svg .bar-loading { fill: var(--loading); } svg .bar-cancelled { fill: var(--soft); }
    svg .phase-waiting { opacity: .35; } svg .phase-paused { fill: var(--paused); opacity: .6; }
    svg .edge { stroke: var(--soft); fill: none; stroke-width: 1.3; }
    svg .arrow { fill: var(--soft); }
    svg .node rect { fill: var(--back); stroke: var(--line); }
    svg .node { cursor: pointer; }
    svg .node:hover rect { fill: var(--hover); }
    svg .node.current rect { fill: var(--select); stroke: var(--accent); stroke-width: 1.5; }
    svg .node:focus-visible { outline: none; }
    svg .node:focus-visible rect { stroke: var(--accent); stroke-width: 2.5; }
    svg .sign-success { fill: var(--success); } svg .sign-failure { fill: var(--failure); }
    svg .sign-loading { fill: var(--loading); } svg .sign-paused { fill: var(--paused); }
    svg .sign-idle { fill: var(--soft); }
    table { border-collapse: collapse; font-size: 13px; width: 100%; }
    th, td { text-align: left; padding: 2px 10px 2px 0; vertical-align: top; }
    th { color: var(--soft); font-weight: 500; }
    summary { cursor: pointer; color: var(--soft); margin-top: 6px; font-size: 13px; }
    kbd {
      font: 12px var(--mono); border: 1px solid var(--line); border-radius: 4px; padding: 0 4px;
    }
    .toast {
      min-height: 1.4em; padding: 4px 16px; color: var(--soft); border-top: 1px solid var(--line);
      background: var(--panel); font-size: 13px;
    }
    .empty { padding: 24px 16px; color: var(--soft); }
    [hidden] { display: none !important; }
    @media (max-width: 900px) {
      main {
        grid-template-columns: minmax(0, 1fr);
        grid-template-rows: minmax(240px, 1fr) minmax(240px, 1fr);
      }
      .stores { border-right: 0; border-bottom: 1px solid var(--line); }
      .row { grid-template-columns: minmax(120px, 1fr) 84px 38px 44px; }
      .row > :nth-child(n+5) { display: none; }
    }
    @media (prefers-reduced-motion: no-preference) {
      .row .loading .sign { display: inline-block; animation: turn 1.2s linear infinite; }
      @keyframes turn { to { transform: rotate(360deg); } }
    }
    """#
}
