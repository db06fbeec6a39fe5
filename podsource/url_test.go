package podsource_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// A site is a web server in memory, an http.RoundTripper.
type site struct {
	mu       sync.Mutex
	body     string
	etag     string
	status   int
	broken   error         // of the connection
	hang     time.Duration // before it answers
	requests []*http.Request
}

func (s *site) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if s.hang > 0 {
		hang := s.hang
		s.mu.Unlock()
		select {
		case <-time.After(hang):
		case <-req.Context().Done():
		}
		s.mu.Lock()
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
	}
	if s.broken != nil {
		return nil, s.broken
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(s.body))}
	if s.status != 0 {
		res.StatusCode = s.status
	}
	if s.etag != "" {
		res.Header.Set("ETag", s.etag)
		if req.Header.Get("If-None-Match") == s.etag {
			res.StatusCode, res.Body = http.StatusNotModified, io.NopCloser(strings.NewReader(""))
		}
	}
	res.Status = http.StatusText(res.StatusCode)
	return res, nil
}

func (s *site) now(change func(*site)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *site) lastRequest() *http.Request {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

func (s *site) asked() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func newURL(t *testing.T, s *site) *podsource.URL {
	t.Helper()
	u, err := podsource.NewURL(podsource.URLConfig{
		URL: "https://user:secret@pods.example/all?token=secret#secret", NodeName: "n", Period: 20 * time.Second,
		Client: &http.Client{Transport: s, Timeout: 10 * time.Second}, Header: http.Header{"X-Site": {"a"}},
	})
	require.NoError(t, err)
	return u
}

// podList returns a list of pods of these names; items say no kind.
func podList(names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"x"}]}}`)
	}
	return `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(items, ",") + `]}`
}

func TestAURLGivesPodsAsAFileDoes(t *testing.T) { // src-14, src-16 … src-19
	s := &site{body: webYAML}
	pods, err := newURL(t, s).Read(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	assert.Equal(t, "web-n", pods[0].Name)
	assert.Empty(t, pods[0].Spec.Tolerations, "src-19: of files only")
	assert.NotEmpty(t, pods[0].UID)
	assert.Equal(t, string(pods[0].UID), pods[0].Annotations[runtime.ConfigHashAnnotation])
	assert.Equal(t, "a", s.requests[0].Header.Get("X-Site"), "src-30")

	s.body = podList("a", "b")
	pods, err = newURL(t, s).Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, podNames(pods))
	assert.NotEqual(t, pods[0].UID, pods[1].UID)

	whole := strings.Replace(podList("a"), `{"metadata"`, `{"kind":"Pod","apiVersion":"v1","metadata"`, 1)
	s.body = whole
	again, err := newURL(t, s).Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, pods[0].UID, again[0].UID, "an item that says what it is is no other pod")

	s.body = podList()
	pods, err = newURL(t, s).Read(t.Context())
	require.NoError(t, err)
	assert.Empty(t, pods)
}

func TestWhatCannotBeFetchedChangesNothing(t *testing.T) { // src-30, src-31
	for name, tc := range map[string]struct {
		change func(*site)
		err    string
	}{
		"an error of the server":    {func(s *site) { s.status = 503 }, "unexpected HTTP status Service Unavailable"},
		"not found":                 {func(s *site) { s.status = 404 }, "Not Found"},
		"no connection":             {func(s *site) { s.broken = errors.New("connection refused") }, "connection refused"},
		"no answer in time":         {func(s *site) { s.hang = time.Minute }, "deadline exceeded"},
		"no manifest":               {func(s *site) { s.body = "<html>" }, "html"},
		"another kind":              {func(s *site) { s.body = `{"apiVersion":"v1","kind":"Node"}` }, "Node"},
		"more than a manifest has":  {func(s *site) { s.body = strings.Repeat(" ", 11<<20) }, "more than"},
		"a list of no pods":         {func(s *site) { s.body = `{"apiVersion":"v1","kind":"PodList","items":[1]}` }, "items[0]"},
		"a list that is not v1":     {func(s *site) { s.body = `{"apiVersion":"v2","kind":"PodList"}` }, "v2"},
		"a field that is not there": {func(s *site) { s.body = webYAML + "extra: 1\n" }, "extra"},
		"a key that is there twice": {func(s *site) { s.body = `{"apiVersion":"v1","kind":"PodList","items":[{"kind":"a","kind":"b"}]}` }, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{body: webYAML}
				u := newURL(t, s)
				got := run(t, u)
				time.Sleep(time.Second)
				require.Equal(t, []string{"web"}, got.names())
				s.now(tc.change)
				time.Sleep(45 * time.Second)
				assert.Equal(t, 1, got.count(), "all stays as it is")
				problems := u.Problems()
				require.Len(t, problems, 1)
				assert.ErrorContains(t, problems[0].Err, tc.err)
				assert.ErrorContains(t, problems[0].Err, "podsource: https://pods.example/all: ")
				assert.NotContains(t, problems[0].Err.Error(), "secret")
				assert.False(t, problems[0].LastGood.IsZero())

				s.now(func(s *site) { s.body, s.status, s.broken, s.hang = webYAML, 0, nil, 0 })
				time.Sleep(40 * time.Second)
				assert.Equal(t, []string{"web"}, got.names())
				assert.Empty(t, u.Problems())
			})
		})
	}
}

func TestAnEmptyAnswerIsAnEmptySetAndAProblem(t *testing.T) { // src-31
	synctest.Test(t, func(t *testing.T) {
		s := &site{body: webYAML}
		u := newURL(t, s)
		got := run(t, u)
		time.Sleep(time.Second)
		s.now(func(s *site) { s.body = "" })
		time.Sleep(50 * time.Second)
		assert.Empty(t, got.names())
		assert.Equal(t, 2, got.count())
		require.Len(t, u.Problems(), 1)
		assert.ErrorContains(t, u.Problems()[0].Err, "empty")
	})
}

func TestRequestsAreConditionalAndAnUnchangedSetIsSentOnce(t *testing.T) { // src-31
	synctest.Test(t, func(t *testing.T) {
		s := &site{body: webYAML, etag: `"1"`}
		u := newURL(t, s)
		got := run(t, u)
		time.Sleep(50 * time.Second)
		assert.Equal(t, 3, s.asked())
		assert.Equal(t, `"1"`, s.lastRequest().Header.Get("If-None-Match"))
		assert.Equal(t, 1, got.count())

		s.now(func(s *site) { s.body, s.etag = "broken", `"2"` })
		time.Sleep(40 * time.Second)
		require.Len(t, u.Problems(), 1)
		assert.Equal(t, `"2"`, s.lastRequest().Header.Get("If-None-Match"), "what could not be used is not sent again either")
		assert.Equal(t, []string{"web"}, got.names())

		s.now(func(s *site) { s.body, s.etag = podList("a"), `"3"` })
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"a"}, got.names())
		assert.Empty(t, u.Problems())
	})
}

func TestTheFirstAnswerIsNotWaitedForAWholePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{broken: errors.New("no route to host")}
		u := newURL(t, s)
		got := run(t, u)
		time.Sleep(8 * time.Second)
		assert.Equal(t, 4, s.asked(), "after 1, 2 and 4 s")
		assert.Zero(t, got.count())
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, s.asked(), 36, "and then no more often than any time")
		s.now(func(s *site) { s.body, s.status, s.broken, s.hang = webYAML, 0, nil, 0 })
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"web"}, got.names())
	})
}

func TestABadPodOfAListHarmsNoOther(t *testing.T) { // lq-23, src-4
	s := &site{body: podList("a", "b", "c")}
	u := newURL(t, s)
	_, err := u.Read(t.Context())
	require.NoError(t, err)
	before := podsOf(t, u)

	s.body = strings.Replace(podList("a", "b", "d", "d"), `"name":"b"},"spec":{"containers":[{"name":"c","image":"x"}]`, `"name":"b"},"spec":{"containers":[]`, 1)
	pods, err := u.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "d"}, podNames(pods))
	assert.Same(t, before["b-n"], podsOf(t, u)["b-n"], "its last good version")
	problems := u.Problems()
	require.Len(t, problems, 2)
	assert.ErrorContains(t, problems[0].Err, "#default/b: spec.containers")
	assert.ErrorContains(t, problems[1].Err, `pod "d-n_default" is also in`)
}

func podsOf(t *testing.T, u *podsource.URL) map[string]any {
	pods, err := u.Read(t.Context())
	require.NoError(t, err)
	m := map[string]any{}
	for _, p := range pods {
		m[p.Name] = p
	}
	return m
}

func TestAFailingURLIsLoggedWhenItBeginsAndNotEachTime(t *testing.T) { // src-32
	synctest.Test(t, func(t *testing.T) {
		var lines counter
		s := &site{broken: errors.New("no route to host")}
		u, err := podsource.NewURL(podsource.URLConfig{
			URL: "http://pods.example", NodeName: "n", Client: &http.Client{Transport: s}, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		})
		require.NoError(t, err)
		run(t, u)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, lines.Load())
	})
}

// A counter counts what is written to it.
type counter struct{ atomic.Int32 }

func (c *counter) Write(p []byte) (int, error) { c.Add(1); return len(p), nil }

func TestNewURLRefusesABadConfig(t *testing.T) {
	for want, cfg := range map[string]podsource.URLConfig{
		"URL is empty":              {NodeName: "n"},
		"NodeName is empty":         {URL: "http://x"},
		"URLConfig.NodeName":        {URL: "http://x", NodeName: "a b"},
		"is not a valid URL":        {URL: "http://user:secret@x:port", NodeName: "n"},
		`"file:///etc"; it must be`: {URL: "file:///etc", NodeName: "n"},
		`"http:///x"; it must be`:   {URL: "http:///x", NodeName: "n"},
		"Period is -1ns":            {URL: "http://x", NodeName: "n", Period: -1},
	} {
		_, err := podsource.NewURL(cfg)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// Whatever a server sends, nothing panics, and what it means does not depend on
// when it was sent.
func FuzzURL(f *testing.F) {
	f.Add(webYAML, podList("a", "b"))
	f.Add(podList("a", "a"), "")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[null,{}]}`, "kind: PodList\napiVersion: v1\nitems: [{metadata: {name: x}}]")
	f.Fuzz(func(t *testing.T, first, second string) {
		s := &site{body: first}
		u := newURL(t, s)
		_, _ = u.Read(t.Context())
		s.body = second
		pods, err := u.Read(t.Context())
		fresh, freshErr := newURL(t, s).Read(t.Context())
		if freshErr == nil {
			require.NoError(t, err)
			for _, p := range fresh {
				require.Contains(t, podNames(pods), podNames(fresh[:1])[0], p.Name)
			}
		}
	})
}
