/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of search results, by the weights of opwest_site/ranking.py: one result for each page, at the heading that
 * contains the terms. Sphinx's own search ranks all pages with a term equally.
 */
"use strict";

(() => {
  if (typeof Search === "undefined") return; /* deferred: the scripts of the search are loaded */

  /* Return the number of each page with a term, and its weight: a term of the index, or all that begin with it. */
  const pagesOf = (word) => {
    const index = Search._index;
    const found = new Map();
    const add = (term, part) => {
      const get = (all) => (Object.hasOwn(all, term) ? all[term] : []);
      const weights = new Map();
      const stored = get(index.weights);
      for (let i = 0; i < stored.length; i += 2) weights.set(stored[i], stored[i + 1]);
      for (const page of [get(index.terms), get(index.titleterms), [...weights.keys()]].flat()) {
        found.set(page, Math.max(found.get(page) ?? 0, part * (weights.get(page) ?? 1)));
      }
    };
    const has = (term) => [index.terms, index.titleterms, index.weights].some((all) => Object.hasOwn(all, term));
    if (has(word)) add(word, 1);
    else if (word.length > 2) {
      const all = new Set([...Object.keys(index.terms), ...Object.keys(index.titleterms)]);
      for (const term of all) {
        if (term.startsWith(word)) add(term, 0.6);
        else if (term.includes(word)) add(term, 0.3);
      }
    }
    return found;
  };

  /* Return the headings of each page: [title, anchor, lower case]. */
  const headings = () => {
    const all = new Map();
    for (const [title, places] of Object.entries(Search._index.alltitles)) {
      for (const [page, id] of places) {
        if (!all.has(page)) all.set(page, []);
        all.get(page).push([title, id ? `#${id}` : "", title.toLowerCase()]);
      }
    }
    return all;
  };

  Search._performSearch = (query, searchTerms, excludedTerms, highlightTerms) => {
    const index = Search._index;
    const phrase = query.toLowerCase().trim();
    const words = [...searchTerms].filter((word) => word.length > 1);
    const maps = words.map(pagesOf).filter((map, i) => map.size || words[i].length > 2);
    const options = (phrase.match(/--[a-z][a-z-]*[a-z]/g) ?? []).map(pagesOf);
    const excluded = new Set([...excludedTerms].flatMap((word) => [...pagesOf(word).keys()]));
    const titles = headings();
    const results = [];
    index.docnames.forEach((name, page) => {
      if (!maps.length || excluded.has(page) || !maps.every((map) => map.has(page))) return;
      let score = 0;
      for (const map of [...maps, ...options.filter((one) => one.has(page))]) score += map.get(page) * Math.log(1 + index.docnames.length / map.size);
      let best = null;
      for (const [title, anchor, lower] of titles.get(page) ?? []) {
        const shared = [...highlightTerms].filter((word) => lower.includes(word)).length;
        const value = shared * 1000 - title.length;
        if (shared && (best === null || value > best.value)) best = { title, anchor, value, lower };
      }
      if (best !== null && best.lower.replace(/[^\w .-]/g, "") === phrase) score *= 1.5;
      const title = index.titles[page];
      const isPart = best !== null && best.title !== title;
      results.push([
        name,
        isPart ? `${title} > ${best.title}` : title,
        isPart ? best.anchor : "",
        null,
        score * index.factors[page],
        index.filenames[page],
        "text",
      ]);
    });
    /* The best result is the last one. */
    return results.sort((a, b) => a[4] - b[4] || b[1].localeCompare(a[1]));
  };
})();
