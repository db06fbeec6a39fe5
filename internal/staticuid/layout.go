package staticuid

import (
	"embed"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// A layout has the fields, in order, of each struct of the package in which a version of
// Kubernetes defines its internal types. hack/podlayout.sh prints that of a version.
type layout map[string][]field

type field struct{ name, typ string }

//go:embed layouts/*.txt
var files embed.FS

// layouts returns the layouts of the releases. The file of a release has the structs that
// differ from those of the next newer one.
var layouts = sync.OnceValue(func() map[Release]layout {
	all, l := make(map[Release]layout), layout{}
	for _, r := range Releases {
		text, err := files.ReadFile(fmt.Sprintf("layouts/1.%d.txt", r))
		if err != nil {
			panic(err) // of a release without an embedded file
		}
		l = l.with(parse(string(text)))
		all[r] = l
	}
	return all
})

// with returns the layout with some structs replaced.
func (l layout) with(other layout) layout {
	merged := maps.Clone(l)
	maps.Copy(merged, other)
	return merged
}

// parse parses a layout: the name of each struct is followed by its fields, indented.
func parse(text string) layout {
	l, name := layout{}, ""
	for line := range strings.Lines(text) {
		first, second, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, " ") {
			l[name] = append(l[name], field{first, second})
		} else {
			name = first
			l[name] = nil
		}
	}
	return l
}
