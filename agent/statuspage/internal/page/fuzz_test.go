package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// The elements of pages, and those of them without an end tag.
var (
	elements = strings.Fields("html head meta title link script body header main footer nav section h1 h2 h3 p ul ol li dl dt dd table caption thead tbody tr th td " +
		"a span bdi div details summary strong em b i code pre small time abbr br svg polygon polyline line figure figcaption button label input form noscript")
	voids = strings.Fields("meta link br input line polygon polyline")
)

var attribute = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9:-]*$`)

// wellFormed checks the text of a page with a browser's tokenizer: elements are
// properly nested, and all are the templates'.
func wellFormed(t *testing.T, body string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(body))
	var open []string
	scripts := 0
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			assert.Empty(t, open, "elements that do not end")
			assert.Equal(t, 1, scripts)
			return
		case html.CommentToken:
			t.Errorf("a comment: %q", z.Token().Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if !slices.Contains(elements, tag.Data) {
				t.Fatalf("an element %s", tag.Data)
			}
			for _, a := range tag.Attr {
				if strings.HasPrefix(a.Key, "on") || !attribute.MatchString(a.Key) {
					t.Errorf("%s has %q", tag.Data, a.Key)
				}
				if a.Key == "href" || a.Key == "src" {
					if to, err := url.Parse(a.Val); err != nil || to.Scheme+to.Host != "" {
						t.Errorf("%s leads to %q", tag.Data, a.Val)
					}
				}
			}
			if tag.Data == "script" {
				scripts++
			}
			if kind == html.StartTagToken && !slices.Contains(voids, tag.Data) {
				open = append(open, tag.Data)
			}
		case html.EndTagToken:
			tag := z.Token()
			if slices.Contains(voids, tag.Data) {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != tag.Data {
				t.Fatalf("%s ends in %v", tag.Data, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// FuzzHostileNames inserts a text wherever pods, users and runtimes supply one: the
// pages stay well-formed, and all elements, attributes and addresses are the
// templates' own.
func FuzzHostileNames(f *testing.F) {
	for _, seed := range []string{
		"", "web-1", `"><script>alert(1)</script>`, "</title><svg onload=alert(1)>", "javascript:alert(1)", "<!--", "-->", "]]>", "{{.}}", "&lt;script&gt;", "'\" onmouseover=x", "a\x00b\xff", "\u202e\u2028",
		"//evil.example/", "../../x", "?uid=%22", "#x", strings.Repeat("<b>", 3000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := allOf(text)
		w, doc := get(t, n, "/")
		require.Equal(t, http.StatusOK, w.Code)
		wellFormed(t, w.Body.String())
		// Also after the repairs that a browser's parser makes.
		for _, name := range []string{"script", "img", "iframe", "object", "style", "base"} {
			want := map[string]int{"script": 1}[name]
			assert.Len(t, doc.all(name), want, name)
		}
		for _, path := range []string{"/pod?uid=" + url.QueryEscape(text), "/pod/" + url.PathEscape(text) + "/" + url.PathEscape(text), "/pod?uid=" + url.QueryEscape(n.Pods[len(n.Pods)-1].UID)} {
			if strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.Contains(path, "/../") || strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..") {
				continue // http.ServeMux redirects
			}
			w, _ := get(t, n, path)
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, w.Code)
			wellFormed(t, w.Body.String())
		}
	})
}
