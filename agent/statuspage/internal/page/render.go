package page

import (
	"embed"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed *.html
var sources embed.FS

// parse returns the embedded templates.
func parse() (*template.Template, error) {
	return template.New("").Funcs(words()).ParseFS(sources, "*.html")
}

// words returns the functions of the templates.
func words() template.FuncMap {
	return template.FuncMap{
		"brief":  func(s string) string { return ends(s, brief) },
		"full":   func(s string) string { return s }, // clean has bounded it
		"name":   func(s string) string { return cut(s, short) },
		"age":    age,
		"size":   size,
		"cpu":    func(n *uint64) string { return known(n, cpu) },
		"bytes":  func(n *uint64) string { return known(n, size) },
		"many":   many,
		"many32": func(n int32, one, more string) string { return many(int(n), one, more) },
		"join":   func(steps []string) string { return strings.Join(steps, "; ") },
		"count":  func(n int) string { return count(int64(n)) },
		"clock":  func(t time.Time) string { return t.Local().Format("15:04:05") },
		"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"date":   func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },

		"href":     func(v view, p *Pod) string { return v.href(p) },
		"category": func(p *Pod) category { return p.category() },
		// The row of a calm pod has no explanation.
		"calm":     func(p *Pod) bool { return p.category() == healthy || p.category() == done },
		"state":    func(p *Pod) string { return cut(p.state(), 40) },
		"ready":    func(p *Pod) (n [2]int) { n[0], n[1] = p.ready(); return n },
		"restarts": func(p *Pod) int32 { return p.restarts() },
		"at":       func(pods []Pod, i int) *Pod { return &pods[i] },

		"chart":      func(s Signal) chart { return s.chart() },
		"available":  func(s Signal) string { return s.words() },
		"thresholds": func(s Signal) string { return s.thresholds() },
		"span": func(s Signal) string {
			if len(s.Points) < 2 {
				return ""
			}
			return age(s.Points[len(s.Points)-1].At.Sub(s.Points[0].At))
		},

		"mostInPod":   func(all []Container) []Container { return firstOf(all, mostInPod) },
		"more":        func(p *Pod) int { return max(len(p.Containers)-mostInPod, 0) },
		"mostProbes":  func(rows []probeRow) []probeRow { return firstOf(rows, mostProbes) },
		"mostVolumes": func(rows []volumeRow) []volumeRow { return firstOf(rows, mostVolumes) },
		"mostImages":  func(rows []Image) []Image { return firstOf(rows, mostImages) },
		"mostEvents":  func(rows []Event) []Event { return firstOf(rows, mostEvents) },
		"sub":         func(a, b int) int { return a - b },
	}
}

func known(n *uint64, say func(uint64) string) string {
	if n == nil {
		return "–"
	}
	return say(*n)
}

// render writes the page of a node or of a pod.
func (h *Handler) render(w io.Writer, v view) error {
	name := "node"
	switch {
	case v.Missing != "":
		name = "missing"
	case v.Pod != nil:
		name = "pod"
	}
	return h.pages.ExecuteTemplate(w, name, v)
}
