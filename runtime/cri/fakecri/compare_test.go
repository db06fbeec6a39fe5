package fakecri_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	criclient "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/logs"
)

// update: go test -run Integration ./runtime/cri/fakecri -update rewrites the
// recorded responses of containerd. Review the difference.
var update = flag.Bool("update", false, "rewrite testdata/calls.txt with the responses of containerd")

const callsFile = "testdata/calls.txt"

// A step of the script is a call with its response.
type step struct {
	comment []string // lines before it
	line    int
	call    string
	key     string // the call, with its number if it was made before: "list (2)"
	answer  string // "OK", "OK a b", "NotFound: words"
	now     string // the state of everything after it; empty: as before
}

// code returns the compared part of a response: the result, or the error's code.
func (s step) code() string {
	if strings.HasPrefix(s.answer, "OK") {
		return s.answer
	}
	code, _, _ := strings.Cut(s.answer, ":")
	return code
}

func readScript(t testing.TB) (steps []step, rest []string) {
	t.Helper()
	data, err := os.ReadFile(callsFile)
	require.NoError(t, err)
	lines, times := bufio.NewScanner(bytes.NewReader(data)), map[string]int{}
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			rest = append(rest, line)
		case strings.HasPrefix(line, "  now "):
			steps[len(steps)-1].now = strings.TrimPrefix(line, "  now ")
		case strings.HasPrefix(line, "  "):
			steps[len(steps)-1].answer = strings.TrimPrefix(line, "  ")
		default:
			key := line
			if times[line]++; times[line] > 1 {
				key = fmt.Sprintf("%s (%d)", line, times[line])
			}
			steps = append(steps, step{comment: rest, line: n, call: line, key: key})
			rest = nil
		}
	}
	return steps, rest
}

func writeScript(t testing.TB, steps []step, rest []string) {
	t.Helper()
	var out bytes.Buffer
	for _, s := range steps {
		for _, line := range s.comment {
			fmt.Fprintln(&out, line)
		}
		fmt.Fprintf(&out, "%s\n  %s\n", s.call, s.answer)
		if s.now != "" {
			fmt.Fprintf(&out, "  now %s\n", s.now)
		}
	}
	for _, line := range rest {
		fmt.Fprintln(&out, line)
	}
	require.NoError(t, os.WriteFile(callsFile, out.Bytes(), 0o644))
}

// A subject is a runtime that runs the script.
type subject struct {
	runtime   internalapi.RuntimeService
	images    internalapi.ImageManagerService
	registry  string // the host that "registry/" in the script stands for
	password  string // of its user bob
	logs      string // a directory
	cgroup    string // of all pods
	ids       map[string]string
	sandboxes map[string]*runtimeapi.PodSandboxConfig
	order     []string // of the names in ids
	last      string   // state
	inProcess bool     // there is no server of streams
	image     string   // the ID of busybox
}

// play makes all calls and returns them with their responses.
func (s *subject) play(t testing.TB, script []step) []step {
	t.Helper()
	ctx := logs.Context(t.Context(), slog.New(slog.DiscardHandler))
	s.ids, s.sandboxes = map[string]string{}, map[string]*runtimeapi.PodSandboxConfig{}
	st, err := s.images.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: busybox}, false)
	require.NoError(t, err)
	require.NotNil(t, st.GetImage(), busybox)
	s.image = st.GetImage().GetId()
	var played []step
	for _, step := range script {
		call, until, _ := strings.Cut(step.call, " until ")
		result, err := s.call(ctx, strings.Fields(call))
		step.answer = s.answer(result, err)
		if testing.Verbose() {
			t.Logf("%d: %s\n\t%s", step.line, step.call, step.answer)
		}
		if until != "" {
			s.await(ctx, t, until)
		}
		step.now = ""
		if now := s.state(ctx, t); now != s.last {
			step.now, s.last = now, now
		}
		played = append(played, step)
	}
	return played
}

// answer formats the response of a call as one line, with names for IDs.
func (s *subject) answer(result string, err error) string {
	var exit utilexec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		return strings.TrimSpace(fmt.Sprintf("OK exit %d %s", exit.ExitStatus(), result))
	case errors.Is(err, criclient.ErrCommandTimedOut):
		return codes.DeadlineExceeded.String() + ": " + err.Error()
	case err != nil:
		st, _ := status.FromError(err)
		return s.named(st.Code().String() + ": " + strings.Join(strings.Fields(st.Message()), " "))
	}
	return strings.TrimSpace("OK " + s.named(result))
}

// named replaces IDs by their names.
func (s *subject) named(text string) string {
	for _, name := range slices.Backward(s.order) {
		text = strings.ReplaceAll(text, s.ids[name], name)
	}
	text = strings.ReplaceAll(text, s.registry+"/", "registry/")
	text = strings.ReplaceAll(text, s.image, "busybox-id")
	return hexes.ReplaceAllString(strings.ReplaceAll(text, s.logs, "logs"), "(id)")
}

// hexes matches IDs without a name: those of failed creations, and shortened ones.
var hexes = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{8})\b`)

// learn gives an ID a name.
func (s *subject) learn(name, id string) {
	if id != "" {
		if _, ok := s.ids[name]; !ok {
			s.order = append(s.order, name)
		}
		s.ids[name] = id
	}
}

// id returns the ID that a token of the script stands for.
func (s *subject) id(word string) string {
	name, length, short := strings.Cut(word, "~")
	id, ok := s.ids[name]
	switch {
	case word == `""`:
		return ""
	case !ok:
		return word
	case short:
		var n int
		fmt.Sscan(length, &n)
		return id[:n]
	}
	return id
}

// state returns the state of all sandboxes and containers, as clients list it.
func (s *subject) state(ctx context.Context, t testing.TB) string {
	t.Helper()
	sandboxes, err := s.runtime.ListPodSandbox(ctx, nil)
	require.NoError(t, err)
	containers, err := s.runtime.ListContainers(ctx, nil)
	require.NoError(t, err)
	images, err := s.images.ListImages(ctx, nil)
	require.NoError(t, err)
	var words []string
	for _, sb := range sandboxes {
		words = append(words, s.named(sb.Id)+"="+strings.ToLower(strings.TrimPrefix(sb.State.String(), "SANDBOX_")))
	}
	for _, c := range containers {
		words = append(words, s.containerState(ctx, c.Id))
	}
	for _, i := range images {
		for _, tag := range i.RepoTags {
			words = append(words, s.named(tag))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func (s *subject) containerState(ctx context.Context, id string) string {
	resp, err := s.runtime.ContainerStatus(ctx, id, false)
	if err != nil {
		return s.named(id) + "=" + status.Code(err).String()
	}
	st := resp.GetStatus()
	word := s.named(id) + "=" + strings.ToLower(strings.TrimPrefix(st.GetState().String(), "CONTAINER_"))
	if st.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
		word += fmt.Sprintf("(%d,%s)", st.GetExitCode(), st.GetReason())
	}
	return word
}

// await polls until a container is in a state: "d=exited", or has written to its log: "d=logged".
func (s *subject) await(ctx context.Context, t testing.TB, want string) {
	t.Helper()
	name, _, _ := strings.Cut(want, "=")
	require.Contains(t, s.ids, name, "until %s", want)
	for end := time.Now().Add(90 * time.Second); ; {
		got := s.containerState(ctx, s.ids[name])
		if strings.HasPrefix(got, want) || want == name+"=logged" && s.logged(ctx, t, name) {
			return
		}
		require.True(t, time.Now().Before(end), "got %s, want %s", got, want)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// logged reports whether a container has written to its log.
func (s *subject) logged(ctx context.Context, t testing.TB, name string) bool {
	t.Helper()
	resp, err := s.runtime.ContainerStatus(ctx, s.ids[name], false)
	require.NoError(t, err)
	log, err := os.Stat(resp.GetStatus().GetLogPath())
	return err == nil && log.Size() > 0
}

// known are expected differences and their reasons, by the key of the call.
type known map[string]difference

// If answer is empty, the call is skipped.
type difference struct{ answer, why string }

// without returns the script without the skipped calls.
func (k known) without(script []step) []step {
	return slices.DeleteFunc(slices.Clone(script), func(s step) bool {
		d, ok := k[s.key]
		return ok && d.answer == ""
	})
}

// differences compares the responses of two runtimes, call by call. It also reports
// expected differences that do not occur.
func differences(want, got []step, but known) []string {
	var diffs []string
	var wantNow, gotNow string
	for i := range want {
		w, g := want[i], got[i]
		if w.now != "" {
			wantNow = w.now
		}
		if g.now != "" {
			gotNow = g.now
		}
		answer := w.code()
		if k, ok := but[w.key]; ok {
			answer = k.answer
		}
		if answer != g.code() {
			diffs = append(diffs, fmt.Sprintf("line %d: %s\n  got  %s\n  want %s", w.line, w.call, g.answer, w.answer))
		}
		if wantNow != gotNow {
			diffs = append(diffs, fmt.Sprintf("line %d: %s\n  got state  %s\n  want state %s", w.line, w.call, gotNow, wantNow))
			gotNow = wantNow // once is enough
		}
	}
	return diffs
}

func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
