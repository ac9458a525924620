extension Page {
  static let markup = #"""
    <body>
    <header>
      <h1 id="title">inspect</h1>
      <span class="facts" id="facts"></span>
      <dl class="counts" id="counts" aria-label="Counts since this page connected"></dl>
      <div class="end">
        <span class="live" id="live" role="status">connecting</span>
        <button id="offline" aria-pressed="false" hidden>As if offline</button>
        <button id="theme">Dark</button>
      </div>
    </header>
    <div class="banner" id="banner" role="alert" hidden></div>
    <main>
      <section class="stores" aria-label="Stores">
        <div class="tools" role="search">
          <input id="search" type="search" placeholder="Search paths, requests, errors  ( / )"
            aria-label="Search stores by path, request, status or error" autocomplete="off"
            spellcheck="false">
          <button id="flat" aria-pressed="true">Tree</button>
        </div>
        <div class="chips" id="chips" role="group"
          aria-label="Show only stores with a status"></div>
        <div class="grid" id="grid" role="treegrid" tabindex="0" aria-label="Stores by path"
          aria-describedby="keys" aria-multiselectable="false">
          <div class="heads" role="rowgroup"><div class="row" role="row" id="heads"></div></div>
          <div class="body" id="body" role="rowgroup" tabindex="-1">
            <div id="filler" role="presentation"></div>
            <div class="empty" id="empty" hidden></div>
          </div>
        </div>
      </section>
      <section class="side" id="side" aria-label="Detail">
        <div id="overview">
          <h2>Overview</h2>
          <p class="request">Select a store to see its value, its rules and its runs.</p>
          <h3>Dependencies</h3>
          <div id="graph-all"></div>
          <h3>Latest events</h3>
          <ol class="plain log" id="log"></ol>
          <h3>Keys</h3>
          <p id="keys">
            <kbd>/</kbd> search, <kbd>↑</kbd> <kbd>↓</kbd> select, <kbd>←</kbd> <kbd>→</kbd> fold,
            <kbd>r</kbd> refetch, <kbd>i</kbd> invalidate, <kbd>x</kbd> cancel,
            <kbd>R</kbd> reset, <kbd>C</kbd> clear, <kbd>esc</kbd> overview
          </p>
        </div>
        <article id="detail" hidden aria-labelledby="name">
          <h2 id="name"></h2>
          <p class="request" id="request"></p>
          <div class="facts-line" id="status"></div>
          <div class="facts-line idle" id="numbers"></div>
          <div class="actions" id="actions" role="group" aria-label="Commands"></div>
          <div id="error-part" hidden>
            <h3>Last error</h3><pre class="failure" id="error"></pre>
          </div>
          <h3>Value</h3>
          <pre id="value" tabindex="0" aria-label="Value"></pre>
          <p class="idle" id="truncated" hidden>The program sends only this part of the value.</p>
          <div id="runs-part"><h3>Runs</h3><div id="runs"></div></div>
          <div id="graph-part"><h3>Reads, and read by</h3><div id="graph"></div></div>
          <div id="rules-part"><h3>Rules</h3><dl class="rules" id="rules"></dl></div>
          <div id="calls-part"><h3>Calls</h3><table id="calls"></table></div>
        </article>
      </section>
    </main>
    <div class="toast" id="toast" role="status" aria-live="polite"></div>
    </body>
    """#
}
