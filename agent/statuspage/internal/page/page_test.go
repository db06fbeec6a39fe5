package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
)

func TestThePageOfANodeListsItsPods(t *testing.T) {
	w, doc := get(t, node(2), "/")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, []string{"worker-1"}, texts(doc.all("h1")))
	assert.Equal(t, []string{"Problems of the node", "Pods", "Pressure", "Probes", "Volumes", "Images", "Events"}, texts(doc.all("h2")))
	assert.Equal(t, []string{
		"5 pods", "1 failing", "1 not ready", "2 ready", "1 completed", "runtime ok", "network failing", "MemoryPressure",
	}, texts(doc.all("header")[0].all("li")))
	assert.Contains(t, doc.text(), "The agent has been running for 1 d 2 h and uses 41 MiB of memory.")

	pods := doc.table(t, "5 pods, those with problems first").rows()
	require.Len(t, pods, 5)
	assert.Equal(t, []string{
		"crash default", "CrashLoopBackOff", "0/1", "7",
		"init prepare exited with code 0 server waiting (CrashLoopBackOff), 7 restarts",
		"The last 8 attempts failed: back-off 5m0s restarting failed container=server; retry in 4m1s. " +
			"Last plan, 12 s ago: start container server, restart 8: it exited with code 3; not before 2026-11-21T12:04:00Z (back-off 5m0s).",
		"0.012", "34.0 MiB", "3 h",
	}, pods[0])
	assert.Equal(t, "young default", pods[1][0])
	assert.Equal(t, []string{
		"web-0 default", "Running", "1/1", "0", "server running",
		"Last plan, 3 h ago: create a sandbox, attempt 0; start container server: it has not run yet.", "0.012", "34.0 MiB", "3 h",
	}, pods[2])
	assert.Equal(t, []string{"job default", "Succeeded"}, pods[4][:2])

	assert.Equal(t, []string{"crash server", "readiness", "GET :8080/index.html", "10 s", "✗ ✓ ✓", "2 ms", "none"}, doc.table(t, "Probes").rows()[0])
	assert.Equal(t, []string{"crash", "data", "empty-dir", "uncertain", "5.0 MiB", `configmap "conf" not found Retry in 4 s.`}, doc.table(t, "Volumes").rows()[0])
	assert.Equal(t, []string{"registry.example/old:1.0", "200 MiB", "unused", "yes", "unused for 3 weeks"}, doc.table(t, "Images").rows()[0])
	events := doc.table(t, "The last 2 events").rows()
	assert.Equal(t, []string{"Warning", "BackOff", "default/crash[server]"}, events[0][1:4])
	assert.Contains(t, events[0][0], "41 times since")
}

func TestASignalIsDrawnAgainstItsThresholds(t *testing.T) {
	_, doc := get(t, node(0), "/")
	charts := doc.all("svg")
	require.Len(t, charts, 4)
	assert.Equal(t, "memory.available: 676 MiB of 8.0 GiB available (8 %)", charts[0].attr("aria-label"))
	assert.Len(t, charts[0].all("line"), 2)
	points := strings.Fields(charts[0].all("polyline")[0].attr("points"))
	assert.Len(t, points, 180)
	assert.Equal(t, []string{"0.0,32.0", "300.0,57.9"}, []string{points[0], points[len(points)-1]}, "from half of it down to a twelfth")
	assert.Equal(t, "62.2", charts[0].all("line")[0].attr("y1"))
	assert.Len(t, charts[3].all("polyline"), 0, "nothing was measured")
	cards := doc.all("li")
	assert.Contains(t, texts(cards), "memory.available 676 MiB of 8.0 GiB available (8 %) Below 1Gi for 2 min. Pods are evicted below 100Mi. Pods are evicted below 1Gi for 1 min 30 s. Over 29 min.")
	assert.Contains(t, texts(cards), "nodefs.inodesFree 6,012,345 of 6,553,600 available (91 %) Pods are evicted below 5% (327,680).")
	assert.Contains(t, texts(cards), "pid.available not measured yet No eviction threshold is set.")
}

func TestThePageOfAPodIsComplete(t *testing.T) {
	for _, path := range []string{"/pod/default/crash", "/pod?uid=uid-crash", "/pod/default/web-0?uid=uid-crash"} {
		w, doc := get(t, node(2), path)
		require.Equal(t, http.StatusOK, w.Code, path)
		assert.Equal(t, []string{"crash"}, texts(doc.all("h1")))
		assert.Equal(t, []string{"State", "Containers", "Probes", "Volumes", "Details", "Events"}, texts(doc.all("h2")))
		assert.Equal(t, [][]string{{"StartContainer server", `failed to "StartContainer" for "server" with CrashLoopBackOff`}}, doc.table(t, "Results").rows())
		containers := doc.table(t, "Containers").rows()
		require.Len(t, containers, 2)
		assert.Equal(t, []string{"server", "waiting (CrashLoopBackOff): back-off 5m0s restarting failed container=server pod=crash_default(uid-crash)", "3 h", "no", "7",
			"registry.example/web:1.2", "exited with code 3 (Error) 12 s ago, after 2 s"}, containers[1])
		runs := doc.table(t, "Last attempts").rows()
		require.Len(t, runs, 3)
		assert.Equal(t, []string{"failed", "3 ms", "HTTP probe failed with statuscode: 503"}, runs[0][1:])
		assert.Len(t, doc.table(t, "Events of the pod").rows(), 1)
		assert.Contains(t, doc.text(), "QoS class BestEffort Addresses 10.88.0.7 Usage 0.012 CPU, 34.0 MiB of memory Age 3 h")
	}
}

func TestEmptySectionsHaveAText(t *testing.T) {
	w, doc := get(t, page.Node{}, "/")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, doc.all("table"))
	assert.Len(t, doc.all("h2"), 6)
	for _, text := range []string{
		"There are no pods.", "There are no measurements of the node.", "No container has a probe.", "No pod has a volume.",
		"There are no images on this node.", "There are no events since the agent started.",
	} {
		assert.Contains(t, doc.text(), text)
	}
	bare := page.Node{At: noon, Pods: []page.Pod{{UID: "u", Namespace: "n", Name: "p"}}}
	_, doc = get(t, bare, "/")
	assert.Equal(t, []string{"p n", "Unknown", "0/0", "0", "none observed", "", "–", "–", "–"}, doc.table(t, "1 pod,").rows()[0])
	_, doc = get(t, bare, "/pod/n/p")
	for _, text := range []string{"There is no plan yet.", "The state is not known.", "No container has been observed.", "The pod has no volumes.", "There are no events of the pod."} {
		assert.Contains(t, doc.text(), text)
	}
	for path, words := range map[string]string{
		"/pod/n/q": "There is no pod n/q.", "/pod?uid=%3Cb%3E": "There is no pod with the UID “<b>”.", "/favicon.ico": "There is no page /favicon.ico.",
	} {
		w, doc := get(t, bare, path)
		assert.Equal(t, http.StatusNotFound, w.Code, path)
		assert.Contains(t, doc.text(), words)
	}
}

func TestAPodOfATwinIsFoundByItsUID(t *testing.T) {
	n := node(0)
	old, young := well(1), well(2)
	young.Name, old.Deleting = old.Name, true
	n.Pods = []page.Pod{old, young}
	_, doc := get(t, n, "/")
	var links []string
	for _, th := range doc.table(t, "2 pods").all("th") {
		for _, a := range th.all("a") {
			links = append(links, a.attr("href"))
		}
	}
	assert.Equal(t, []string{"pod?uid=uid-1", "pod?uid=uid-2"}, links)
}

func TestHostileNamesDoNoHarm(t *testing.T) {
	n := hostile()
	evil := n.Pods[len(n.Pods)-1].UID
	w, doc := get(t, n, "/")
	pages := []tree{doc}
	bodies := []string{w.Body.String()}
	for _, a := range doc.all("a") {
		assert.Regexp(t, `^(#|\?refresh=0$|pod[/?]|healthz$|pods$|explain$|stats/summary$)`, a.attr("href"))
		if strings.HasPrefix(a.attr("href"), "pod?uid=%22") {
			path, _, _ := strings.Cut(a.attr("href"), "#")
			w, doc := get(t, n, "/"+path)
			require.Equal(t, http.StatusOK, w.Code)
			pages, bodies = append(pages, doc), append(bodies, w.Body.String())
		}
	}
	require.Greater(t, len(pages), 1, "the pod of UID %q has a page", evil)
	for i, doc := range pages {
		scripts := doc.all("script")
		require.Len(t, scripts, 1)
		assert.Equal(t, "page.js", scripts[0].attr("src"))
		assert.Empty(t, doc.all("img", "iframe", "object", "embed", "style", "form"))
		for d := range doc.Descendants() {
			for _, a := range d.Attr {
				assert.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style", "%s %s=%q", d.Data, a.Key, a.Val)
			}
		}
		assert.NotRegexp(t, regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f]|\u202e"), bodies[i], "nothing that speaks to a terminal or turns text around")
	}
}

func TestAPageHasABound(t *testing.T) {
	w, doc := get(t, verbose(), "/")
	assert.Less(t, w.Body.Len(), 1<<20)
	assert.Len(t, doc.table(t, "110 pods").rows(), 110)
	assert.Len(t, doc.table(t, "The last 200 events").rows(), 200)
	assert.True(t, strings.Contains(doc.text(), "802 more are not shown"))
	w, _ = get(t, verbose(), "/pod?uid=uid-7")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Less(t, w.Body.Len(), 1<<20)
	many := page.Node{At: noon}
	for i := range 2000 {
		many.Pods = append(many.Pods, page.Pod{UID: strings.Repeat("u", i%7), Name: strings.Repeat("p", i%300)})
	}
	w, doc = get(t, many, "/")
	assert.Less(t, w.Body.Len(), 1<<20)
	assert.True(t, strings.Contains(doc.text(), "1500 more are not shown"))
}

// The requirements of screen readers and narrow screens.
func TestPagesAreAccessible(t *testing.T) {
	for _, path := range []string{"/", "/pod/default/crash", "/pod/default/missing"} {
		_, doc := get(t, node(3), path)
		assert.Equal(t, "en", doc.all("html")[0].attr("lang"))
		assert.NotEmpty(t, doc.all("title")[0].text())
		assert.Len(t, doc.all("h1"), 1)
		assert.Len(t, doc.all("main"), 1)
		ids := map[string]bool{}
		for d := range doc.Descendants() {
			if id := (tree{d}).attr("id"); id != "" {
				assert.False(t, ids[id], "two elements have the id %s", id)
				ids[id] = true
			}
		}
		for _, s := range doc.all("section") {
			assert.True(t, ids[s.attr("aria-labelledby")], "a section has no heading: %s", s.attr("aria-labelledby"))
		}
		for _, a := range doc.all("a") {
			assert.NotEmpty(t, a.text())
			if at, ok := strings.CutPrefix(a.attr("href"), "#"); ok {
				assert.True(t, ids[at], "nothing is at %s", at)
			}
		}
		for _, svg := range doc.all("svg") {
			assert.Equal(t, "img", svg.attr("role"))
			assert.NotEmpty(t, svg.attr("aria-label"))
		}
		for _, table := range doc.all("table") {
			require.Len(t, table.all("caption"), 1)
			heads := table.all("thead")[0].all("th")
			for _, th := range heads {
				assert.Equal(t, "col", th.attr("scope"))
			}
			for _, tr := range table.all("tbody")[0].all("tr") {
				cells := tr.all("th", "td")
				assert.Len(t, cells, len(heads))
				assert.Len(t, tr.all("th"), 1)
				assert.Equal(t, "row", tr.all("th")[0].attr("scope"))
				for _, cell := range cells {
					assert.NotEmpty(t, cell.attr("data-label"))
				}
			}
		}
	}
}

func TestAPageLoadsNothingFromElsewhere(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml",
		"/nothing": "text/html; charset=utf-8",
	} {
		w, _ := get(t, node(1), path)
		assert.Equal(t, kind, w.Header().Get("Content-Type"), path)
		policy := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			assert.Contains(t, policy, want)
		}
		assert.NotContains(t, policy, "unsafe")
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		assert.NotRegexp(t, `(src|href|url|@import)[=( ]*"?(https?:)?//`, w.Body.String())
	}
}

func TestAPageIsRefreshedWithoutJavaScript(t *testing.T) {
	for path, want := range map[string]string{"/": "5", "/?refresh=60": "60", "/?refresh=0": "", "/?refresh=-1": "5", "/?refresh=x": "5", "/?refresh=99999999999": "5"} {
		w, doc := get(t, node(1), path)
		assert.Contains(t, w.Body.String(), `data-refresh="`)
		if want == "" {
			assert.NotContains(t, w.Body.String(), `http-equiv`)
			assert.Contains(t, doc.text(), "Not refreshed; refresh every 5 s")
			continue
		}
		assert.Contains(t, w.Body.String(), `<noscript><meta http-equiv="refresh" content="`+want+`"></noscript>`, path)
		assert.Contains(t, w.Body.String(), `data-refresh="`+want+`"`)
	}
}

func TestOnlyReadingIsPossible(t *testing.T) {
	h, err := page.New(page.Config{Node: func(context.Context) page.Node { return node(1) }})
	require.NoError(t, err)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
	}
	_, err = page.New(page.Config{})
	assert.EqualError(t, err, "page: Config.Node is nil")
}

func TestConcurrentReadersShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, now atomic.Int32
		h, err := page.New(page.Config{Node: func(context.Context) page.Node {
			asked.Add(1)
			assert.EqualValues(t, 1, now.Add(1), "never twice at a time")
			defer now.Add(-1)
			time.Sleep(100 * time.Millisecond)
			return node(1)
		}})
		require.NoError(t, err)
		read := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			return w.Body.Len()
		}
		for range 50 {
			go read(t.Context())
		}
		synctest.Wait()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 1, asked.Load())
		time.Sleep(time.Second)
		assert.NotZero(t, read(t.Context()))
		assert.EqualValues(t, 2, asked.Load())

		// A client that closes its request early does not affect others.
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Zero(t, read(ctx))
		assert.NotZero(t, read(t.Context()))
	})
}

// The cause of an error is at its end: it is not cut off.
func TestTheEndOfALongErrorIsShown(t *testing.T) {
	n := node(1)
	n.Pods[0].Err = "mount failed"
	n.Pods[0].Why = "Failing to mount volumes for 2 min: " + strings.Repeat("volume driver: ", 100) + "no such device"
	n.Pods[1].Volumes[0].Err = strings.Repeat("wrapped: ", 100) + "the cause"
	_, doc := get(t, n, "/")
	row := doc.table(t, "4 pods").rows()
	for _, r := range row {
		if r[0] == "web-0 default" {
			assert.Contains(t, r[5], "Failing to mount volumes for 2 min")
			assert.Contains(t, r[5], "no such device")
		}
	}
	assert.Contains(t, doc.text(), "the cause")
	failing := 0
	for _, tr := range doc.all("tr") {
		if tr.attr("class") == "failing" && strings.Contains(tr.text(), "web-0 default") {
			failing++
		}
	}
	assert.Equal(t, 1, failing, "an error of a pod is red, also without an error of a volume")
}

func TestThePageOfAPodHasItsLogs(t *testing.T) {
	n := node(1)
	n.Pods[0].Containers[0].LogPath = "/var/log/pods/x/server/3.log"
	answer, fails := []string{"2026-11-21T12:00:00Z panic: <b>no\x1b[2J license</b>", strings.Repeat("x", 1000)}, error(nil)
	h, err := page.New(page.Config{Fresh: time.Nanosecond, Node: func(context.Context) page.Node { return n }, Log: func(p *page.Pod, path string) ([]string, error) {
		assert.Equal(t, "web-0", p.Name)
		assert.Equal(t, "/var/log/pods/x/server/3.log", path)
		return answer, fails
	}})
	require.NoError(t, err)
	body := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	shown := body("/pod/default/web-0")
	assert.Contains(t, shown, "<code>/var/log/pods/x/server/3.log</code>")
	assert.Contains(t, shown, "panic: &lt;b&gt;no\uFFFD[2J license&lt;/b&gt;")
	assert.NotContains(t, shown, strings.Repeat("x", 500))
	assert.NotContains(t, body("/pod/default/job"), "3.log")
	answer = nil
	assert.Contains(t, body("/pod/default/web-0"), "The log is empty.")
	fails = errors.New("permission denied")
	assert.Contains(t, body("/pod/default/web-0"), "The log cannot be read: permission denied")
}
