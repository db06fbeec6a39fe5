//go:build unix

package footprint

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
)

// repository is the prefix of the names of the functions of this repository.
const repository = "github.com/kubeparts/kubeparts/"

// A site is a function that allocated memory that is still in use.
type site struct {
	name           string
	bytes, objects float64
}

// liveProfile returns the heap profile as of the last garbage collection but one.
func liveProfile() []runtime.MemProfileRecord {
	records := make([]runtime.MemProfileRecord, 1024)
	for {
		n, ok := runtime.MemProfile(records, false)
		if ok {
			return records[:n]
		}
		records = make([]runtime.MemProfileRecord, n+n/2)
	}
}

// liveSites returns who allocated the memory that is in use, by size. A site is the function of
// this repository that is nearest to the allocation, or else the package that allocated. rate is
// the runtime.MemProfileRate.
func liveSites(records []runtime.MemProfileRecord, rate int) []site {
	sites := map[string]*site{}
	for _, r := range records {
		if r.InUseObjects() == 0 {
			continue
		}
		name := siteOf(r.Stack())
		s := sites[name]
		if s == nil {
			s = &site{name: name}
			sites[name] = s
		}
		// An object is sampled with a probability that grows with its size.
		size := float64(r.InUseBytes()) / float64(r.InUseObjects())
		scale := 1 / (1 - math.Exp(-size/float64(rate)))
		s.bytes += scale * float64(r.InUseBytes())
		s.objects += scale * float64(r.InUseObjects())
	}
	var sorted []site
	for _, s := range sites {
		sorted = append(sorted, *s)
	}
	slices.SortFunc(sorted, func(a, b site) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	return sorted
}

// siteOf returns the name of the site of a stack, whose first frame is the allocation.
func siteOf(stack []uintptr) string {
	allocator := "runtime"
	for frames := runtime.CallersFrames(stack); ; {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, repository); ok {
			name, _, _ = strings.Cut(name, ".func") // a closure belongs to its function
			return strings.ReplaceAll(name, "[...]", "")
		}
		if allocator == "runtime" {
			allocator = cmp.Or(packageOf(frame.Function), allocator)
		}
		if !more {
			return allocator
		}
	}
}

// packageOf returns the import path of a function.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// sitesTable returns the largest sites as a table in Markdown, with a line for the others.
func sitesTable(sites []site, most int) string {
	var b strings.Builder
	b.WriteString("\n| allocated by | live | objects |\n|---|---|---|\n")
	line := func(name string, s site) {
		fmt.Fprintf(&b, "| %s | %.0f KiB | %.0f |\n", name, s.bytes/1024, s.objects)
	}
	var others, all site
	for i, s := range sites {
		all.bytes += s.bytes
		all.objects += s.objects
		if i < most {
			line(s.name, s)
			continue
		}
		others.bytes += s.bytes
		others.objects += s.objects
	}
	if len(sites) > most {
		line(fmt.Sprintf("%d others", len(sites)-most), others)
	}
	line("all", all)
	return b.String()
}
