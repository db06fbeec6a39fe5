package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// A logged is a runtime of one container, whose log is a file.
type logged struct {
	runtime.Runtime
	path string

	// mu guards the fields below.
	mu    sync.Mutex
	state runtime.ContainerState
	fail  error
	lists int
}

func (l *logged) LogPath(_ context.Context, id string) (string, error) {
	if id != "containerd://c1" {
		return "", fmt.Errorf("container %q: %w", id, runtime.ErrNotFound)
	}
	return l.path, nil
}

func (l *logged) Pods(context.Context) ([]*runtime.Pod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists++
	if l.fail != nil {
		return nil, l.fail
	}
	return []*runtime.Pod{{Containers: []runtime.Container{{ID: "containerd://c1", State: l.state}}}}, nil
}

func (l *logged) set(state runtime.ContainerState, fail error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.fail = state, fail
}

func (l *logged) listed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

// speaker is a pod whose container runs.
var speaker = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Name: "speaker", Namespace: "ns", UID: "b1"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c"}, {Name: "waits"}}},
	Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
		{Name: "c", ContainerID: "containerd://c1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		{Name: "waits", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
	}},
}

const speech = "2026-11-21T10:00:00.1Z stdout F one\n2026-11-21T10:00:01.1Z stderr F two\n2026-11-21T10:00:02.1Z stdout F three\n"

// newLogged returns a server of speaker's log.
func newLogged(t testing.TB, change func(*server.Config)) (*server.Server, *logged) {
	l := &logged{path: filepath.Join(t.TempDir(), "0.log"), state: runtime.ContainerRunning}
	require.NoError(t, os.WriteFile(l.path, []byte(speech), 0o640))
	quick, err := logread.New(logread.Config{Recheck: 20 * time.Millisecond})
	require.NoError(t, err)
	return newServer(t, func(c *server.Config) {
		c.Pods, c.Runtime = pods{speaker}, l
		c.Containers.Logs.Reader = quick
		if change != nil {
			change(c)
		}
	}), l
}

func (l *logged) say(t *testing.T, text string) {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestALogIsAnswered(t *testing.T) {
	s, _ := newLogged(t, nil)
	const undecodable, invalid = `{"message": "Unable to decode query."}`, `{"message": "Invalid request."}`
	for name, c := range map[string]struct {
		path string // after /containerLogs/
		code int
		body string
	}{
		"la-3: both streams":                     {"ns/speaker/c", 200, "one\ntwo\nthree\n"},
		"la-3: all streams":                      {"ns/speaker/c?stream=All", 200, "one\ntwo\nthree\n"},
		"la-3: one stream":                       {"ns/speaker/c?stream=Stdout", 200, "one\nthree\n"},
		"la-3: the other":                        {"ns/speaker/c?stream=Stderr", 200, "two\n"},
		"la-1: tailLines":                        {"ns/speaker/c?tailLines=1", 200, "three\n"},
		"la-1: no line":                          {"ns/speaker/c?tailLines=0", 200, ""},
		"la-1: tail":                             {"ns/speaker/c?tail=2", 200, "two\nthree\n"},
		"la-1: tail is stronger":                 {"ns/speaker/c?tail=1&tailLines=2", 200, "three\n"},
		"la-1: all of the tail":                  {"ns/speaker/c?tail=all&tailLines=1", 200, "one\ntwo\nthree\n"},
		"la-1: an empty tail":                    {"ns/speaker/c?tail=", 200, "one\ntwo\nthree\n"},
		"la-1: limitBytes":                       {"ns/speaker/c?limitBytes=5", 200, "one\nt"},
		"la-1: sinceTime":                        {"ns/speaker/c?sinceTime=2026-11-21T10:00:01Z", 200, "two\nthree\n"},
		"la-1: no sinceTime":                     {"ns/speaker/c?sinceTime=", 200, "one\ntwo\nthree\n"},
		"la-7: sinceSeconds":                     {"ns/speaker/c?sinceSeconds=9223372036854775807", 200, "one\ntwo\nthree\n"},
		"la-8: timestamps":                       {"ns/speaker/c?timestamps=true&tailLines=1", 200, "2026-11-21T10:00:02.100000000Z three\n"},
		"la-8: timestamps without a value":       {"ns/speaker/c?timestamps&tailLines=1", 200, "2026-11-21T10:00:02.100000000Z three\n"},
		"la-1: a flag that is off":               {"ns/speaker/c?timestamps=False&follow=0&tailLines=1", 200, "three\n"},
		"la-1: an unknown option":                {"ns/speaker/c?what=ever&tailLines=1", 200, "three\n"},
		"la-1: no number":                        {"ns/speaker/c?tailLines=x", 400, undecodable},
		"la-1: an empty number":                  {"ns/speaker/c?limitBytes=", 400, undecodable},
		"la-1: too large a number":               {"ns/speaker/c?sinceSeconds=9223372036854775808", 400, undecodable},
		"la-1: no number of the tail":            {"ns/speaker/c?tail=some", 400, undecodable},
		"la-1: no time":                          {"ns/speaker/c?sinceTime=yesterday", 400, undecodable},
		"la-1: no query":                         {"ns/speaker/c?a=%zz", 400, undecodable},
		"la-1: fewer lines than none":            {"ns/speaker/c?tailLines=-1", 422, invalid},
		"la-1: no bytes":                         {"ns/speaker/c?limitBytes=0", 422, invalid},
		"la-1: since now":                        {"ns/speaker/c?sinceSeconds=0", 422, invalid},
		"la-1: two times":                        {"ns/speaker/c?sinceSeconds=1&sinceTime=2026-11-21T10:00:01Z", 422, invalid},
		"la-1: no such stream":                   {"ns/speaker/c?stream=stdout", 422, invalid},
		"la-1: an empty stream":                  {"ns/speaker/c?stream=", 422, invalid},
		"la-1: a stream and a tail":              {"ns/speaker/c?stream=Stdout&tailLines=1", 422, invalid},
		"la-1: all streams and a tail":           {"ns/speaker/c?stream=All&tailLines=1", 200, "three\n"},
		"la-2: no pod":                           {"ns/x/c", 404, `pod "x" does not exist`},
		"la-2: no pod in that namespace":         {"other/speaker/c", 404, `pod "speaker" does not exist`},
		"la-2: no container":                     {"ns/speaker/x", 404, `container "x" not found in pod "speaker"`},
		"la-2: no log yet":                       {"ns/speaker/waits", 400, `container "waits" in pod "speaker" is waiting to start: image can't be pulled`},
		"la-4: no previous container":            {"ns/speaker/c?previous=true", 400, `previous terminated container "c" in pod "speaker" not found`},
		"the query is looked at before the pod":  {"ns/x/c?tailLines=x", 400, undecodable},
		"a name that leads elsewhere":            {"ns/speaker/..%2f..%2fetc", 400, "the path is not canonical\n"},
		"a name that leads up":                   {"ns/%2e%2e/c", 400, "the path is not canonical\n"},
		"a name that is this directory":          {"%2e/speaker/c", 400, "the path is not canonical\n"},
		"a name that is two":                     {"ns/speaker/a%2fb", 400, `invalid name "a/b": may not contain '/'`},
		"a name with something behind a percent": {"ns/speaker/a%25b", 400, `invalid name "a%b": may not contain '%'`},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(s, "GET", "/containerLogs/"+c.path, "")
			assert.Equal(t, c.code, w.Code)
			assert.Equal(t, c.body, w.Body.String())
			assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
			assert.Equal(t, c.code == 200, w.Flushed)
		})
	}
	assert.Equal(t, 405, ask(s, "POST", "/containerLogs/ns/speaker/c", "").Code)
}

func TestANodeThatHasNoLogs(t *testing.T) {
	s, _ := newLogged(t, func(c *server.Config) { c.Runtime = nil })
	w := ask(s, "GET", "/containerLogs/ns/speaker/c", "")
	assert.Equal(t, 404, w.Code)
	assert.Equal(t, "container logs are not supported by this node", w.Body.String())
}

func TestOneStreamCanBeRefused(t *testing.T) { // la-3
	s, _ := newLogged(t, func(c *server.Config) { c.Containers.Logs.NoSplitStreams = true })
	assert.Equal(t, 400, ask(s, "GET", "/containerLogs/ns/speaker/c?stream=Stdout", "").Code)
	assert.Equal(t, 200, ask(s, "GET", "/containerLogs/ns/speaker/c?stream=All", "").Code)
}

// unflushable is a connection without http.Flusher.
type unflushable struct{ http.ResponseWriter }

func TestALogNeedsAConnectionThatCanBeFlushed(t *testing.T) { // la-2
	s, _ := newLogged(t, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(unflushable{w}, httptest.NewRequest("GET", "/containerLogs/ns/speaker/c", nil))
	assert.Equal(t, 500, w.Code)
}

func TestALogThatCannotBeFoundIsAnError(t *testing.T) { // la-2
	s, l := newLogged(t, nil)
	require.NoError(t, os.Remove(l.path))
	w := ask(s, "GET", "/containerLogs/ns/speaker/c", "")
	assert.Equal(t, 400, w.Code)
	assert.Contains(t, w.Body.String(), "does not exist")
}

// A reader is what it does.
type reader func(ctx context.Context, req logread.Request, w io.Writer) error

func (r reader) Read(ctx context.Context, req logread.Request, w io.Writer) error {
	return r(ctx, req, w)
}

func TestALogThatEndsEarlyTellsWhyIfItIsToBeTold(t *testing.T) { // la-2
	broken := reader(func(_ context.Context, req logread.Request, w io.Writer) error {
		_, _ = io.WriteString(w, "one\n")
		req.Gap(logread.ErrRemoved)
		_, _ = io.WriteString(w, "three and a ha")
		return errors.New("the disk\nis broken")
	})
	fine := reader(func(_ context.Context, _ logread.Request, w io.Writer) error {
		_, err := io.WriteString(w, "one\n")
		return err
	})
	get := func(t *testing.T, how server.ContainerLogs) (string, http.Header, error) {
		s, _ := newLogged(t, func(c *server.Config) { c.Containers.Logs = how })
		h := httptest.NewServer(s)
		defer h.Close()
		resp, err := http.Get(h.URL + "/containerLogs/ns/speaker/c")
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		assert.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, []string{"chunked"}, resp.TransferEncoding) // la-3
		body, err := io.ReadAll(resp.Body)
		return string(body), resp.Trailer, err
	}
	t.Run("by its connection", func(t *testing.T) {
		body, _, err := get(t, server.ContainerLogs{Reader: broken})
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, "one\nthree and a ha", body)
	})
	t.Run("by a trailer", func(t *testing.T) {
		body, trailer, err := get(t, server.ContainerLogs{Reader: broken, Trailer: true})
		assert.NoError(t, err)
		assert.Equal(t, "one\nthree and a ha", body)
		assert.Equal(t, "lines are missing here: rotated files were removed before they were read; the log ends early: the disk is broken", trailer.Get(server.LogErrorTrailer))
	})
	t.Run("in a few words", func(t *testing.T) {
		rotated := reader(func(_ context.Context, req logread.Request, w io.Writer) error {
			_, _ = io.WriteString(w, "one\n")
			for range 10_000 {
				req.Gap(logread.ErrRemoved)
			}
			return errors.New("the disk is broken")
		})
		_, trailer, err := get(t, server.ContainerLogs{Reader: rotated, Trailer: true})
		assert.NoError(t, err)
		said := trailer.Get(server.LogErrorTrailer)
		assert.Less(t, len(said), 1000)
		assert.True(t, strings.HasSuffix(said, "; and more; the log ends early: the disk is broken"), said)
	})
	t.Run("by lines of it", func(t *testing.T) {
		body, _, err := get(t, server.ContainerLogs{Reader: broken, Marker: true})
		assert.NoError(t, err)
		assert.Equal(t, "one\n[kubeparts: lines are missing here: rotated files were removed before they were read]\nthree and a ha\n[kubeparts: the log ends early: the disk is broken]\n", body)
	})
	t.Run("but not if it does not", func(t *testing.T) {
		body, trailer, err := get(t, server.ContainerLogs{Reader: fine, Trailer: true, Marker: true})
		assert.NoError(t, err)
		assert.Equal(t, "one\n", body)
		assert.Equal(t, http.Header{server.LogErrorTrailer: {""}}, trailer)
	})
}

// follow follows speaker's log.
func follow(t *testing.T, ctx context.Context, s http.Handler, query string) *bufio.Reader {
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	r, err := http.NewRequestWithContext(ctx, "GET", h.URL+"/containerLogs/ns/speaker/c?follow=true"+query, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, 200, resp.StatusCode)
	return bufio.NewReader(resp.Body)
}

func TestALogIsFollowedUntilTheContainerEnds(t *testing.T) { // la-3, la-12
	s, l := newLogged(t, nil)
	body := follow(t, t.Context(), s, "&tailLines=0") // who gets the head, though there is no line
	l.say(t, "2026-11-21T10:00:03.1Z stdout F four\n")
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "four\n", line)
	l.set(runtime.ContainerExited, nil)
	_, err = body.ReadByte()
	assert.Equal(t, io.EOF, err)
}

func TestAContainerWhoseRuntimeDoesNotAnswerIsFollowed(t *testing.T) { // la-15
	s, l := newLogged(t, nil)
	l.set(runtime.ContainerRunning, fmt.Errorf("list: %w", runtime.ErrUnavailable))
	body := follow(t, t.Context(), s, "&tailLines=0")
	before := l.listed()
	require.Eventually(t, func() bool { return l.listed() > before+1 }, 90*time.Second, 10*time.Millisecond)
	l.say(t, "2026-11-21T10:00:03.1Z stdout F four\n")
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "four\n", line)
	l.set(runtime.ContainerRunning, errors.New("broken"))
	_, err = body.ReadByte()
	assert.Equal(t, io.ErrUnexpectedEOF, err)
}

func TestAFollowOfAContainerThatIsGoneEnds(t *testing.T) {
	s, l := newLogged(t, nil)
	l.set(runtime.ContainerExited, nil)
	all, err := io.ReadAll(follow(t, t.Context(), s, ""))
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\nthree\n", string(all))
}

func TestAClientThatGoesAwayEndsItsReading(t *testing.T) {
	ended := make(chan error, 1)
	plain, err := logread.New(logread.Config{})
	require.NoError(t, err)
	s, _ := newLogged(t, func(c *server.Config) {
		c.Containers.Logs.Reader = reader(func(ctx context.Context, req logread.Request, w io.Writer) error {
			err := plain.Read(ctx, req, w)
			ended <- err
			return err
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err = follow(t, ctx, s, "").ReadString('\n')
	require.NoError(t, err)
	cancel()
	select {
	case err := <-ended:
		assert.ErrorIs(t, err, context.Canceled)
	case <-time.After(90 * time.Second):
		require.Fail(t, "it goes on")
	}
}

func TestAClientThatIsSlowHoldsNobodyElse(t *testing.T) {
	s, l := newLogged(t, nil)
	l.say(t, strings.Repeat("2026-11-21T10:00:03.1Z stdout F "+strings.Repeat("x", 1000)+"\n", 20_000)) // more than a connection holds
	follow(t, t.Context(), s, "")                                                                       // its output is not read
	for range 3 {
		w := ask(s, "GET", "/containerLogs/ns/speaker/c?limitBytes=4", "")
		assert.Equal(t, "one\n", w.Body.String())
	}
}
