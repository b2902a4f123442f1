"""The page to play with. Python here makes pages and numbers; ``static/`` draws them, with plain ES modules and SVG."""
