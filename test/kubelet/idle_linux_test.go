package kubelet

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	idlePerListener = 20_000
	idlePerProcess  = 5_000 // more would need a limit of open files that few have
	asIdle          = "KUBEPARTS_TEST_AS_IDLE"
)

// TestHelperIdleConnections is a process of the test below: it opens connections, sends
// nothing, and holds them until its input ends.
func TestHelperIdleConnections(t *testing.T) {
	target := os.Getenv(asIdle)
	if target == "" {
		t.Skip("is run by another test")
	}
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	family, to := syscall.AF_UNIX, syscall.Sockaddr(&syscall.SockaddrUnix{Name: target})
	if !strings.HasPrefix(target, "/") {
		addr, err := net.ResolveTCPAddr("tcp4", target)
		require.NoError(t, err)
		family, to = syscall.AF_INET, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	}
	// Without the runtime's poller and buffers: these are 80,000 in all.
	for range idlePerProcess {
		fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Connect(fd, to)
		}
		require.NoError(t, err)
	}
	fmt.Println("\nopen")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// holdIdle opens idlePerListener connections to each target, until the test ends.
func holdIdle(t *testing.T, targets []string) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < idlePerProcess+200 {
		why := fmt.Sprintf("needs a limit of %d open files for each process; it is %d", idlePerProcess+200, limit.Max)
		if os.Getenv("KUBEPARTS_CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	var opened []chan error
	for _, target := range targets {
		for range idlePerListener / idlePerProcess {
			cmd := exec.Command(os.Args[0], "-test.run=^TestHelperIdleConnections$")
			cmd.Env = append(os.Environ(), asIdle+"="+target)
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			done := make(chan error, 1)
			opened = append(opened, done)
			go func() {
				scanner := bufio.NewScanner(out)
				for scanner.Scan() {
					if scanner.Text() == "open" {
						done <- nil
						break
					}
				}
				done <- fmt.Errorf("%s: %s", target, scanner.Text())
				_, _ = io.Copy(io.Discard, out)
			}()
			t.Cleanup(func() {
				_ = in.Close()
				_ = cmd.Wait()
			})
		}
	}
	for _, done := range opened {
		require.NoError(t, <-done)
	}
}

// anonymousMemory returns the memory of a process that no file backs, in bytes.
func anonymousMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	var size, resident, shared int64 // pages
	_, err = fmt.Sscan(string(text), &size, &resident, &shared)
	require.NoError(t, err)
	return (resident - shared) * int64(os.Getpagesize())
}

// longestGap returns the longest time between two lines of a file, each of which is a
// time in seconds, since a given time; the time since then if there are no lines.
func longestGap(t *testing.T, file string, since time.Time) (longest time.Duration, n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	last := since
	for line := range strings.Lines(string(text)) {
		seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		require.NoError(t, err)
		at := time.UnixMicro(int64(seconds * 1e6))
		if at.Before(since) {
			continue
		}
		longest, last, n = max(longest, at.Sub(last)), at, n+1
	}
	return max(longest, time.Since(last)), n
}

// Idle connections, 20,000 to each listener, do not delay pod starts and probes, and
// use little memory.
func TestIdleConnections(t *testing.T) {
	if os.Getenv("KUBEPARTS_FLOOD") == "" {
		t.Skip("opens 80,000 connections; set KUBEPARTS_FLOOD=1 to run it")
	}
	for name, listen := range map[string]string{"page on TCP": "--listen=127.0.0.1:0", "page on a socket": ""} {
		t.Run(name, func(t *testing.T) { idleConnections(t, listen) })
	}
}

func idleConnections(t *testing.T, listen string) {
	w := &world{agent: newAgent(t, "process")}
	config := filepath.Join(w.dir, "kubelet.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {}\n"+
		"address: 127.0.0.1\nport: -1\nreadOnlyPort: -1\nhealthzPort: -1\nauthorization: {mode: AlwaysAllow}\n"), 0o600))
	w.listen, w.flags = nil, []string{"--config=" + config}
	if listen != "" {
		w.listen = []string{listen}
	}
	probes := filepath.Join(w.dir, "probes")
	w.put("probed", "apiVersion: v1\nkind: Pod\nmetadata: {name: probed}\nspec:\n  containers:\n  - name: main\n    image: none\n    command: [sleep, '3600']\n"+
		"    readinessProbe: {periodSeconds: 1, timeoutSeconds: 30, exec: {command: [sh, -c, 'date +%s.%N >> "+probes+"']}}\n")
	w.start()
	targets := []string{w.addr}
	for _, at := range []string{`kubelet API at https://(\S+)`, `http://(\S+)/pods\n`, `health at http://(\S+)/healthz\n`} {
		found := regexp.MustCompile(at).FindStringSubmatch(w.out.String())
		require.NotNil(t, found, at)
		targets = append(targets, found[1])
	}
	starts := 0
	// startPods returns the longest time from the manifest of a pod to its running
	// state.
	startPods := func() (slowest time.Duration) {
		for range 5 {
			starts++
			name := fmt.Sprint("new-", starts)
			file := filepath.Join(w.dir, name)
			begun := time.Now()
			w.put(name, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+"}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    image: none\n    command: [sh, -c, 'touch "+file+"; exec sleep 3600']\n")
			for time.Since(begun) < patience {
				if _, err := os.Stat(file); err == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			slowest = max(slowest, time.Since(begun))
		}
		return slowest
	}
	w.eventually("probes run", func() bool { _, err := os.Stat(probes); return err == nil })
	pid := w.cmd.Process.Pid
	begun := time.Now()
	startBefore := startPods()
	time.Sleep(max(0, 10*time.Second-time.Since(begun))) // some probes more
	gapBefore, _ := longestGap(t, probes, begun)
	before := anonymousMemory(t, pid)

	begun = time.Now()
	holdIdle(t, targets)
	opening := time.Since(begun)
	opened := anonymousMemory(t, pid)
	startDuring := startPods()
	time.Sleep(max(0, 10*time.Second-time.Since(begun)))
	gapDuring, n := longestGap(t, probes, begun)
	during := max(opened, anonymousMemory(t, pid))
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	ok, text := w.healthz()
	t.Logf("%d connections to each of %d listeners in %v: memory %d MiB before, %d MiB at most then; %d open files; slowest of 5 pod starts %v before, %v then; longest gap of a probe of 1 s %v before, %v then, of %d",
		idlePerListener, len(targets), opening.Round(time.Millisecond), before>>20, during>>20, len(files), startBefore.Round(time.Millisecond), startDuring.Round(time.Millisecond), gapBefore.Round(time.Millisecond), gapDuring.Round(time.Millisecond), n)
	assert.True(t, ok, text)
	assert.Less(t, during-before, int64(64<<20), "bytes")
	assert.Less(t, len(files), 2_000, "open files")
	assert.Less(t, startDuring, 5*startBefore+5*time.Second)
	assert.Less(t, gapDuring, 3*gapBefore+5*time.Second)
}
