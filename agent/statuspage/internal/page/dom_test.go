package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
)

// A tree is a parsed page, or a part of it.
type tree struct{ *html.Node }

// get requests a page of a node, and returns the response and its parsed body.
func get(t *testing.T, n page.Node, path string) (*httptest.ResponseRecorder, tree) {
	t.Helper()
	h, err := page.New(page.Config{Node: func(context.Context) page.Node { return n }})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	root, err := html.Parse(strings.NewReader(w.Body.String()))
	require.NoError(t, err)
	return w, tree{root}
}

// all returns the elements of these names below, in order.
func (n tree) all(names ...string) (found []tree) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && slices.Contains(names, d.Data) {
			found = append(found, tree{d})
		}
	}
	return found
}

// attr returns an attribute, empty if there is none.
func (n tree) attr(name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is the visible text of it, with single spaces.
func (n tree) text() string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// texts returns the texts of many nodes.
func texts(all []tree) (out []string) {
	for _, n := range all {
		out = append(out, n.text())
	}
	return out
}

// table returns the one with this caption's beginning.
func (n tree) table(t *testing.T, caption string) tree {
	t.Helper()
	for _, table := range n.all("table") {
		if c := table.all("caption"); len(c) == 1 && strings.HasPrefix(c[0].text(), caption) {
			return table
		}
	}
	require.FailNow(t, "no table", "with the caption %q", caption)
	return tree{}
}

// rows returns the rows of a table's body, as the texts of their cells.
func (n tree) rows() (rows [][]string) {
	for _, body := range n.all("tbody") {
		for _, tr := range body.all("tr") {
			rows = append(rows, texts(tr.all("th", "td")))
		}
	}
	return rows
}
