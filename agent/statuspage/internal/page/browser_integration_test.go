package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// A page that is open in a browser is updated without a click; sections that the
// reader has closed stay closed.
func TestIntegrationAnOpenPageIsRefreshed(t *testing.T) {
	lab.Need(t, "chromium")
	var looks atomic.Int64
	h, err := page.New(page.Config{Fresh: time.Nanosecond, Node: func(context.Context) page.Node {
		if looks.Add(1) == 1 {
			return node(0)
		}
		return node(2)
	}})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	root, err := html.Parse(strings.NewReader(lab.Browser{After: 12 * time.Second}.DOM(t, server.URL)))
	require.NoError(t, err)
	assert.Greater(t, looks.Load(), int64(1))
	assert.Len(t, tree{root}.table(t, "5 pods").rows(), 5)
	assert.NotContains(t, tree{root}.all("html")[0].attr("class"), "stale")
}

func TestIntegrationAPageReportsThatTheAgentIsGone(t *testing.T) {
	lab.Need(t, "chromium")
	var looks atomic.Int64
	h, err := page.New(page.Config{Fresh: time.Nanosecond, Node: func(context.Context) page.Node {
		if looks.Add(1) > 1 {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		return node(2)
	}})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	root, err := html.Parse(strings.NewReader(lab.Browser{After: 8 * time.Second}.DOM(t, server.URL)))
	require.NoError(t, err)
	assert.Contains(t, tree{root}.all("html")[0].attr("class"), "stale")
	assert.Len(t, tree{root}.table(t, "5 pods").rows(), 5, "the last content is still shown")
}

// A script in the name of a pod does not run, and only the page's own files are
// requested.
func TestIntegrationHostileNamesDoNoHarmInABrowser(t *testing.T) {
	lab.Need(t, "chromium")
	n := hostile()
	for i := range n.Pods {
		n.Pods[i].Message = `<script>document.title="owned"</script><img src=/owned onerror='document.title="owned"'>`
	}
	h, err := page.New(page.Config{Node: func(context.Context) page.Node { return n }})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	dom := lab.Browser{}.DOM(t, server.URL)
	root, err := html.Parse(strings.NewReader(dom))
	require.NoError(t, err)
	assert.NotEqual(t, "owned", tree{root}.all("title")[0].text())
	assert.Empty(t, tree{root}.all("img"))
}
