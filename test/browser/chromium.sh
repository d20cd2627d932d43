#!/bin/sh
# chromium.sh ARGUMENT...: the browser of make browser. Its folder of settings is in TRELLIS_BROWSER_WORK, where it also
# has the authorities that it trusts.
exec "$(dirname "$0")/inside.sh" "$TRELLIS_BROWSER_ROOT" "$TRELLIS_BROWSER_WORK" /usr/lib/chromium/chromium "$@"
