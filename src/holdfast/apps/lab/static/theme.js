// Runs before the page is drawn, so that a chosen theme does not flash.
"use strict";
(() => {
  let theme = null;
  try { theme = localStorage.getItem("holdfast-theme"); } catch { /* storage may be switched off */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
