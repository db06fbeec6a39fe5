package oracle

import (
	"context"
	"errors"
	"net"
	"sync"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	node "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	criserve "github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
)

// A process is the recording of one process of a kubelet, and the listener of its connections.
type process struct {
	tap      *tap
	recorder *record.Recorder
	wrapped  node.Config // its source and sink notify recorder
	set      func([]*v1.Pod)
	address  net.Addr
	accepted chan net.Conn

	mu    sync.Mutex
	open  int           // connections
	ended chan struct{} // closed when there are none any more

	closing sync.Once
	closed  chan struct{} // by the server
}

// newProcess begins the recording of a process, with the present pods.
func (t *tap) newProcess(address net.Addr) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.processes++
	const queue, file = 256 << 20, 1 << 30
	recorder, err := record.New(record.Config{Dir: processDir(t.dir, t.processes), Node: t.node, QueueBytes: queue, MaxBytes: file})
	if err != nil {
		return nil, err
	}
	p := &process{tap: t, recorder: recorder, address: address, accepted: make(chan net.Conn), ended: make(chan struct{}), closed: make(chan struct{})}
	p.wrapped = node.Config{
		Sources: map[string]podsource.PodSource{podsource.APISource: podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
			p.set = set
			return nil
		})},
		Sink:       new(status.MemorySink),
		Subsystems: node.Subsystems{Probes: prober.Handlers{Exec: execProbe(nil)}},
	}
	recorder.Agent(&p.wrapped)
	err = p.wrapped.Sources[podsource.APISource].Run(context.Background(), func([]*v1.Pod) {})
	p.set(t.pods)
	t.process = p
	return p, err
}

// add passes a connection to the server of the process; false: the process has ended. p may be nil.
func (p *process) add(conn net.Conn) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	select {
	case <-p.ended:
		p.mu.Unlock()
		return false
	default:
	}
	p.open++
	p.mu.Unlock()
	go func() {
		c := &processConn{Conn: conn, process: p}
		select {
		case p.accepted <- c:
		case <-p.ended: // the tap ends
			_ = c.Close()
		}
	}()
	return true
}

// run serves the process and writes its recording, until it has no connections or ctx is done.
func (p *process) run(ctx context.Context, config criserve.Config) error {
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	recorded := make(chan error, 1)
	go func() { recorded <- p.recorder.Run(recording) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	config.Listener = p
	config.Runtime, config.Images = p.services(config.Runtime, config.Images)
	server, err := criserve.New(config)
	if err == nil {
		err = server.Run(ctx)
	}
	stop() // its calls have returned
	return errors.Join(err, <-recorded)
}

// services returns recorded services in place of those of a runtime.
func (p *process) services(rt internalapi.RuntimeService, images internalapi.ImageManagerService) (internalapi.RuntimeService, internalapi.ImageManagerService) {
	return p.recorder.RuntimeService(tappedRuntime{rt, p.tap, p.recorder}), p.recorder.ImageService(images)
}

// Accept implements net.Listener. It fails only after Close: the end of the process is not an error of the listener.
func (p *process) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The listener of all processes remains.
func (p *process) Close() error {
	p.closing.Do(func() { close(p.closed) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	return nil
}

func (p *process) endLocked() {
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
}

// Addr implements net.Listener.
func (p *process) Addr() net.Addr { return p.address }

// A processConn is a connection of a process.
type processConn struct {
	net.Conn
	process *process
	once    sync.Once
}

// Close implements net.Conn.
func (c *processConn) Close() error {
	c.once.Do(func() {
		p := c.process
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open--; p.open == 0 {
			p.endLocked()
		}
	})
	return c.Conn.Close()
}
