// clidocs writes the reference of trellisctl: pages in Markdown, made from its commands.
//
//	clidocs <folder>
package main

import (
	"github.com/trellis-garden/trellis/hack/pages"
	"github.com/trellis-garden/trellis/pkg/trellisctl"
	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

func main() {
	pages.Main("clidocs", func() map[string]string { return reference.Markdown(trellisctl.NewCommand()) })
}
