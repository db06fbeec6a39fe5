package hollow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A program runs the nodes in a process of its own: kwok, or examples/hollow --adopt. It adopts Node objects, which are
// created here as users of kwok create them.
type program struct {
	api     kubernetes.Interface
	command []string
	nodes   []string // names
	w       io.Writer

	process atomic.Pointer[labenv.Process] // nil until Run has started it
}

// kubeconfigPlace is the place of the kubeconfig file in the command of a program.
const kubeconfigPlace = "{kubeconfig}"

func newProgram(o options, api kubernetes.Interface, kubeconfig string, w io.Writer) *program {
	p := &program{api: api, command: strings.Fields(strings.ReplaceAll(o.program, kubeconfigPlace, kubeconfig)), w: w}
	for i := range o.nodes {
		p.nodes = append(p.nodes, fmt.Sprintf("%s-%d", o.name, i))
	}
	return p
}

// Names implements engine.
func (p *program) Names() []string { return p.nodes }

// Run implements engine. The output of the program is shown if it exits.
func (p *program) Run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kubeparts-hollow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = each(ctx, p.w, len(p.nodes), "nodes are created", func(ctx context.Context, i int) error {
		_, err := p.api.CoreV1().Nodes().Create(ctx, kwokNode(p.nodes[i]), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	process, err := labenv.Start(p.command[0], p.command[1:], filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	p.process.Store(process)
	select {
	case <-ctx.Done():
		return process.Stop(time.Minute)
	case <-process.Exited:
		return fmt.Errorf("%s has exited:\n%s", p.command[0], process.Tail(20))
	}
}

// Remove implements engine.
func (p *program) Remove(ctx context.Context) error {
	return each(ctx, p.w, len(p.nodes), "nodes are removed", func(ctx context.Context, i int) error {
		err := p.api.CoreV1().Nodes().Delete(ctx, p.nodes[i], metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// measure implements engine. Garbage is included: the process collects it when it does.
func (p *program) measure() (usage, error) {
	process := p.process.Load()
	if process == nil {
		return usage{}, errors.New("the program has not been started")
	}
	cpu, err := labenv.CPUTime(process.PID())
	return usage{at: time.Now(), cpu: cpu, memory: uint64(max(labenv.AnonymousMemory(process.PID()), 0))}, err
}

// kwokNode returns a Node object for kwok, or a program in its place.
func kwokNode(name string) *v1.Node {
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
			Labels: map[string]string{"type": "kwok", v1.LabelHostname: name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"},
		},
		Status: v1.NodeStatus{Allocatable: capacity, Capacity: capacity},
	}
}
