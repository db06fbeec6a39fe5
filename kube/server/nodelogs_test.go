package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/server"
)

// logsOf returns a server whose /logs is a directory below another, which has a secret.
func logsOf(t *testing.T, services func(context.Context, server.LogQuery, io.Writer) error) (s *server.Server, dir string) {
	t.Helper()
	above := t.TempDir()
	dir = filepath.Join(above, "log")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "pods"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(above, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubelet.log"), []byte("one\ntwo\nthree\nno end"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pods", "a.log"), []byte("of a pod\n"), 0o600))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return newServer(t, func(c *server.Config) { c.Node.Logs, c.Node.ServiceLogs = root.FS(), services }), dir
}

func TestTheNodesLogsAreItsFiles(t *testing.T) {
	s, _ := logsOf(t, nil)
	w := ask(s, "GET", "/logs/", "")
	assert.Contains(t, w.Body.String(), `<a href="kubelet.log">`)
	assert.Contains(t, w.Body.String(), `<a href="pods/">`)
	assert.Equal(t, "of a pod\n", ask(s, "GET", "/logs/pods/a.log", "").Body.String())
	w = ask(s, "GET", "/logs/kubelet.log", "", "Range: bytes=4-6")
	assert.Equal(t, "two", w.Body.String())
	assert.Equal(t, "logs/", ask(s, "GET", "/logs", "").Header().Get("Location"))
	assert.Equal(t, 405, ask(s, "POST", "/logs/kubelet.log", "").Code)
	assert.Equal(t, 404, ask(newServer(t, nil), "GET", "/logs/", "").Code)
}

// Nothing leads out of the directory: no dots, however they are written, no links.
func TestNothingLeadsOutOfTheLogs(t *testing.T) {
	s, dir := logsOf(t, nil)
	for link, to := range map[string]string{"up": "../secret", "far": filepath.Join(dir, "..", "secret"), "etc": "/etc", "dir": ".."} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	require.NoError(t, os.Symlink("kubelet.log", filepath.Join(dir, "in")))
	assert.Contains(t, ask(s, "GET", "/logs/in", "").Body.String(), "one", "a link that stays inside")
	for _, path := range []string{
		"/logs/../secret", "/logs/..%2fsecret", "/logs/%2e%2e/secret", "/logs/%2e%2e%2fsecret", "/logs/pods/../../secret", "/logs/pods/..%2f..%2fsecret",
		"/logs/..%5csecret", "/logs//etc/passwd", "/logs/%2fetc%2fpasswd", "/logs/.%2e/secret", "/logs/secret%00", "/logs/..;/secret", "/logs/%252e%252e/secret",
		"/logs/up", "/logs/far", "/logs/etc/passwd", "/logs/etc/", "/logs/dir/secret", "/logs/dir/", "/containerLogs/../../secret", "/containerLogs/..%2f..%2fsecret/a/b",
		"/logs/?query=/../secret", "/logs/?query=../secret", "/logs/?query=pods/../../secret", `/logs/?query=..\secret`, "/logs/?query=/up", "/logs/?query=/etc/passwd",
	} {
		w := ask(s, "GET", path, "")
		assert.Contains(t, []int{400, 403, 404}, w.Code, path)
		assert.NotContains(t, w.Body.String(), "secret\x00", path)
		assert.NotEqual(t, "secret", w.Body.String(), path)
		assert.NotContains(t, w.Body.String(), "root:", path)
	}
}

func TestAnInvalidLogQueryIsRejected(t *testing.T) {
	for query, wantErr := range map[string]string{
		"":                           "query: want services, or one file",
		"query=a&query=/b":           "query: want services, or one file",
		"query=/a&query=/b":          "query: more than one file",
		"query=-x":                   `query: "-x" is not a service name`,
		"query=a*":                   `query: "a*" is not a service name`,
		"query=":                     `query: "" is not a service name`,
		"query=/":                    `query: "/" is not a file in`,
		"query=a/../../b":            "is not a file in",
		"query=a&sinceTime=1":        "sinceTime: \"1\": want a time such as 2026",
		"query=a&untilTime=now":      "untilTime: \"now\": want a time such as 2026",
		"query=a&tailLines=-1":       `tailLines: "-1" is not a number`,
		"query=a&boot=1":             `boot: "1" is not 0`,
		"query=a&pattern=[":          "pattern: error parsing regexp",
		"query=/a&boot=0":            "apply to services only",
		"query=/a&" + since("10:00"): "apply to services only",
		"query=a&" + since("10:00") + "&untilTime=2026-01-02T09:00:00Z": "untilTime is before sinceTime",
	} {
		v, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = server.ParseLogQuery(v)
		assert.ErrorContains(t, err, wantErr, query)
	}
}

func since(clock string) string { return "sinceTime=2026-01-02T" + clock + ":00Z" }

func TestALogQueryOfFiles(t *testing.T) {
	s, dir := logsOf(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "own"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own", "own.log"), []byte("own\n"), 0o600))
	long := strings.Repeat("x", 3<<20)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long"), []byte("a\n"+long+"\nb\n"), 0o600))
	for query, want := range map[string]string{
		"query=/kubelet.log":                          "one\ntwo\nthree\nno end",
		"query=pods/a.log":                            "of a pod\n",
		"query=kubelet":                               "one\ntwo\nthree\nno end", // NAME.log
		"query=own":                                   "own\n",                   // NAME/NAME.log
		"query=kubelet&query=own":                     "one\ntwo\nthree\nno endown\n",
		"query=kubelet&tailLines=2":                   "three\nno end",
		"query=kubelet&tailLines=0":                   "",
		"query=kubelet&tailLines=9":                   "one\ntwo\nthree\nno end",
		"query=kubelet&pattern=o":                     "one\ntwo\nno end",
		"query=kubelet&pattern=%5Et&tailLines=1":      "three\n",
		"query=/long&tailLines=1":                     "b\n",
		"query=/long&pattern=%5Eb":                    "b\n",
		"query=/long&pattern=xxx&tailLines=100&x=all": long, // cut, as lines of more than 1 MiB are; its end is one of its own
	} {
		w := ask(s, "GET", "/logs/?"+query, "")
		assert.Equal(t, 200, w.Code, query)
		assert.True(t, want == w.Body.String(), "%s: %d bytes", query, w.Body.Len())
	}
	for query, code := range map[string]int{"query=/none": 404, "query=none": 404, "query=/pods/": 400, "query=kubelet&boot=0": 400, "query=-": 400} {
		assert.Equal(t, code, ask(s, "GET", "/logs/?"+query, "").Code, query)
	}
}

func TestACanceledLogQueryReadsNothing(t *testing.T) {
	s := newServer(t, func(c *server.Config) { c.Node.Logs = fstest.MapFS{"a": {Data: []byte("line\n")}} })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/logs/?query=/a", nil))
	assert.Empty(t, w.Body.String())
}

func TestALogQueryOfServicesReadsTheJournal(t *testing.T) {
	var err error
	s, _ := logsOf(t, func(_ context.Context, q server.LogQuery, w io.Writer) error {
		if err == nil {
			fmt.Fprint(w, strings.Join(server.JournalArgs(q), " "))
		}
		return err
	})
	for query, args := range map[string]string{
		"query=kubelet":                                 "--unit=kubelet",
		"query=kubelet&query=containerd.service":        "--unit=kubelet --unit=containerd.service",
		"query=a@b&boot=-1&tailLines=5":                 "--lines=5 --boot=-1 --unit=a@b",
		"query=a&pattern=x%20y":                         "--grep=(*LIMIT_MATCH=100000)(*LIMIT_DEPTH=10000)x y --case-sensitive=true --unit=a",
		"query=a&sinceTime=2026-01-02T15:04:05Z":        "--since=@1767366245 --unit=a",
		"query=a&untilTime=2026-01-02T15:04:05%2B01:00": "--until=@1767362645 --unit=a",
	} {
		assert.Equal(t, "--utc --no-pager --quiet --output=short-precise "+args, ask(s, "GET", "/logs/?"+query, "").Body.String())
	}
	err = errors.New("the journal is broken")
	assert.Equal(t, 500, ask(s, "GET", "/logs/?query=kubelet", "").Code)
	err = fmt.Errorf("there is no journal: %w", errors.ErrUnsupported)
	assert.Contains(t, ask(s, "GET", "/logs/?query=kubelet", "").Body.String(), "one\n", "files instead")
}

func FuzzALogQueryIsReadOrRefused(f *testing.F) {
	f.Add("query=kubelet&tailLines=2&sinceTime=2026-01-02T15:04:05Z&boot=-1&pattern=a.*")
	f.Add("query=/a/b.log")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := server.ParseLogQuery(v)
		if err != nil {
			return
		}
		assert.False(t, strings.Contains("/"+q.File+"/", "/../"), q.File)
		for _, arg := range server.JournalArgs(q) {
			assert.True(t, strings.HasPrefix(arg, "--"), arg)
		}
	})
}
