package chaos

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// Most faults once, with ten pods of ten shapes: no invariant is violated and nothing remains.
// Faults whose outcome depends on timing inside containerd are left to longer runs.
func TestIntegrationClusterLivesThroughChaos(t *testing.T) {
	lab.Need(t, "containerd", "kubernetes")
	var out bytes.Buffer
	o, err := parseFlags([]string{"--once", "--pods=10", "--seed=40"}, &out)
	require.NoError(t, err)
	o.kinds = slices.DeleteFunc(o.kinds, func(name string) bool {
		return slices.Contains([]string{nothing, "containerd-killed", "containerd-disk-full", "socket-cut", "cgroup-removed"}, name)
	})
	code := chaos(t.Context(), o, &out)
	t.Logf("%s", &out)
	require.Zero(t, code)
	assert.Contains(t, out.String(), "no invariant was violated")
}

func TestInvalidFlagsAreErrors(t *testing.T) {
	for arg, wantErr := range map[string]string{
		"--pods=0":        "--pods must be from 1 to 100",
		"--pods=200":      "--pods must be from 1 to 100",
		"--duration=-1s":  "--duration and --bound must be positive",
		"--bound=0s":      "--duration and --bound must be positive",
		"--faults=quake":  `unknown kind "quake"; see --list`,
		"--draw=-1":       "--draw must not be negative",
		"--no-such":       "see --help",
		"what":            `unexpected argument "what"`,
		"--seed=tomorrow": "see --help",
	} {
		_, err := parseFlags([]string{arg}, new(bytes.Buffer))
		assert.ErrorContains(t, err, wantErr, arg)
	}
	var help bytes.Buffer
	_, err := parseFlags([]string{"--help"}, &help)
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, help.String(), "go run ./test chaos")
	assert.Contains(t, help.String(), "-faults kinds")
}

func TestRoundsAreListed(t *testing.T) {
	list := func(args ...string) string {
		var out bytes.Buffer
		o, err := parseFlags(args, &out)
		require.NoError(t, err)
		require.Zero(t, chaos(t.Context(), o, &out))
		return out.String()
	}
	all := list("--list")
	for _, k := range kinds {
		assert.Contains(t, all, k.name)
	}
	for _, l := range invariants() {
		assert.Contains(t, all, l.name)
	}
	assert.Regexp(t, `(?m)^round 3: `, list("--draw=3", "--seed=7"))
	assert.Equal(t, list("--draw=3", "--seed=7"), list("--draw=3", "--seed=7"))
}

func TestMissingProgramsAreListed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such path")
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KUBEPARTS_CI", "")
	var out bytes.Buffer
	o, err := parseFlags([]string{"--containerd=/no/such/containerd"}, &out)
	require.NoError(t, err)
	t.Setenv("KUBEPARTS_CONTAINERD", "") // is set by the run, and restored after the test
	require.Equal(t, 2, chaos(t.Context(), o, &out))
	assert.Contains(t, out.String(), "failed to run")
	assert.Contains(t, out.String(), "containerd: ")
}

// echo is a server whose answers are what it was asked.
func echo(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
				_ = c.Close()
			}()
		}
	}()
}

func ask(c net.Conn, what string) (string, error) {
	if _, err := fmt.Fprintln(c, what); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func TestASocketIsHeldAndCut(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sockets of files")
	}
	dir := t.TempDir()
	echo(t, filepath.Join(dir, "to"))
	p, err := newProxy(filepath.Join(dir, "at"), filepath.Join(dir, "to"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.close()) }()
	dial := func() (net.Conn, error) { return net.Dial("unix", p.path) }
	c, err := dial()
	require.NoError(t, err)
	got, err := ask(c, "one")
	require.NoError(t, err)
	assert.Equal(t, "one\n", got)

	p.hold()
	answer := make(chan string, 1)
	go func() {
		got, _ := ask(c, "two")
		answer <- got
	}()
	select {
	case got := <-answer:
		t.Errorf("%q came through", got)
	case <-time.After(50 * time.Millisecond):
	}
	p.release()
	assert.Equal(t, "two\n", <-answer)

	require.NoError(t, p.cut())
	_, err = ask(c, "three")
	assert.Error(t, err)
	_, err = dial()
	assert.Error(t, err)
	require.NoError(t, p.mend())
	c, err = dial()
	require.NoError(t, err)
	got, err = ask(c, "four")
	require.NoError(t, err)
	assert.Equal(t, "four\n", got)
}

func TestTheReportHasWhatHappened(t *testing.T) {
	o, err := parseFlags([]string{"--seed=7", "--pods=3"}, new(bytes.Buffer))
	require.NoError(t, err)
	d := o.drawer()
	d.first()
	r := result{options: o, began: noon, checker: newChecker(), versions: []string{"containerd 2.4.2"}}
	for i := range 5 {
		r.outcomes = append(r.outcomes, outcome{round: d.next(), began: noon, recovery: time.Duration(i) * time.Second, notes: []string{"a | b"}})
	}
	r.outcomes[4].recovery = -1
	r.checker.check(converges, false, "round 5", "it is Pending")
	r.checker.tolerate("another cause")
	text := r.markdown()
	for _, part := range []string{
		"--seed 7 --pods 3 --duration 10m0s --report docs/reliability.md", "| with | containerd 2.4.2 |", "| **violations** | **1** |",
		"| converges | ", "converges: round 5: it is Pending", "- 1 times: another cause", "**never**", "a / b",
	} {
		assert.Contains(t, text, part)
	}
}

func TestQuantilesAreTimesThatWereTaken(t *testing.T) {
	var times []time.Duration
	assert.Zero(t, quantile(times, 50))
	for i := range 200 {
		times = append(times, time.Duration(i+1))
	}
	assert.EqualValues(t, 100, quantile(times, 50))
	assert.EqualValues(t, 198, quantile(times, 99))
	assert.EqualValues(t, 1, quantile(times[:1], 99))
}
