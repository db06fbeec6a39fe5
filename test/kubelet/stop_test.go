//go:build unix

package kubelet

import (
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// fakePod starts the agent with one pod, and returns when that runs in the fake runtime.
func (w *world) fakePod(fake *fakecri.Runtime, name string) {
	w.t.Helper()
	w.put(name, manifest(name, "terminationGracePeriodSeconds: 1", containers(container("main", untilTerm))))
	w.start()
	w.until("the pod runs", func() error {
		if runningOn(fake) != 1 {
			return fmt.Errorf("%d containers run", runningOn(fake))
		}
		return nil
	})
}

func runningOn(fake *fakecri.Runtime) (n int) {
	for _, c := range fake.Containers("") {
		if c.State == fakecri.Running {
			n++
		}
	}
	return n
}

func TestATermLeavesContainersRunning(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an agent")
	}
	t.Parallel()
	fake := newFakeCRI(t)
	endpoint, _ := serveFakeCRI(t, fake, nil)
	w := &world{agent: newAgent(t, endpoint)}
	w.flags = []string{"--stop-pods=false"}
	w.fakePod(fake, "web")
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, w.cmd.Wait())
	assert.Equal(t, 1, runningOn(fake))

	w.flags = nil
	w.start()
	require.NoError(t, w.interrupt())
	assert.Zero(t, runningOn(fake), "--stop-pods")
}

func TestATermEndsAnAgentWhoseRuntimeIsGone(t *testing.T) {
	if testing.Short() {
		t.Skip("starts agents; one waits for pods that cannot be stopped")
	}
	t.Parallel()
	for flag, fails := range map[string]string{"--stop-pods=false": "", "--stop-pods": "agent: drain: at least 1 pods left: "} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			fake := newFakeCRI(t)
			endpoint, stop := serveFakeCRI(t, fake, nil)
			w := &world{agent: newAgent(t, endpoint)}
			w.flags = []string{flag}
			w.fakePod(fake, "web")
			stop()
			require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
			ended := make(chan error, 1)
			go func() { ended <- w.cmd.Wait() }()
			select {
			case err := <-ended:
				if fails == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorAs(t, err, new(*exec.ExitError))
					assert.Contains(t, w.out.String(), fails)
				}
			case <-time.After(2 * patience):
				w.kill()
				<-ended
				t.Fatal("the agent does not end")
			}
			_, err := net.DialTimeout("tcp", w.addr, 5*time.Second)
			assert.Error(t, err, "its port is free")
			w.abandoned = true
		})
	}
}

// The connections of a frozen listener are not read from after freeze was closed, as those
// of a runtime that hangs, until thaw is closed.
type frozen struct {
	net.Listener
	freeze, thaw chan struct{}
}

func (f frozen) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	return frozenConn{c, f}, err
}

type frozenConn struct {
	net.Conn
	from frozen
}

func (c frozenConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.from.freeze:
		<-c.from.thaw
	default:
	}
	return n, err
}

func TestATermEndsAnAgentWhoseRuntimeHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an agent")
	}
	t.Parallel()
	fake, hang := newFakeCRI(t), frozen{freeze: make(chan struct{}), thaw: make(chan struct{})}
	endpoint, _ := serveFakeCRI(t, fake, func(l net.Listener) net.Listener { hang.Listener = l; return hang })
	t.Cleanup(func() { close(hang.thaw) })
	w := &world{agent: newAgent(t, endpoint)}
	w.flags = []string{"--stop-pods=false"}
	w.fakePod(fake, "web")
	close(hang.freeze)
	w.remove("web.yaml") // a call of the runtime is outstanding
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(2 * patience):
		w.kill()
		<-ended
		t.Fatal("the agent does not end")
	}
	w.abandoned = true
}
