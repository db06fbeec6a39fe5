package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// dialTimeout is how long a CRI runtime may take to answer first.
const dialTimeout = 20 * time.Second

// A connected is the runtime that was chosen.
type connected struct {
	*cri.Runtime
	name     string
	typ      string // of runtime: "containerd"
	cri      internalapi.RuntimeService
	images   internalapi.ImageManagerService
	facts    podconfig.Node
	node     *podNode
	managers *nodeManagers
	ids      *userns.Allocator // of user namespaces; nil: pods have none
	noResize string            // why nothing can be resized in place; "" if it can
	close    func(context.Context) error
}

// connect makes the runtime: the same pod engine over plain processes or over a
// CRI socket.
func (a *assembly) connect(ctx context.Context, vols *volumes, objects cri.Objects) (connected, error) {
	var c connected
	keyring, err := a.nodeCredentials()
	if err != nil {
		return c, err
	}
	facts, err := cri.ReadFacts(os.DirFS("/"))
	if err != nil {
		return c, fmt.Errorf("what this machine has can't be read: %w", err)
	}
	var limits internalapi.RuntimeService // of containers that can be limited; nil: plain processes can't
	if a.opts.runtime == "process" {
		err = c.startProcesses(a)
	} else {
		err = c.dial(ctx, a)
		limits = c.cri
	}
	if err != nil {
		return c, err
	}
	exclusive := func(pod *v1.Pod) bool { return c.managers.exclusiveCPUs(pod) } // the managers are made after the node
	if c.node, err = a.readNode(ctx, limits, exclusive); err != nil {
		return c, err
	}
	if c.managers, err = a.readManagers(ctx, limits, c.node.capacity); err != nil {
		return c, err
	}
	c.facts = configured(facts, a.opts.kubelet, c.node)
	cfg := cri.Config{
		Name: c.typ, Runtime: c.cri, Images: c.images,
		Node: cri.Node{IPs: a.hostIPs, Facts: c.facts}, PodLogsDir: a.opts.logs, RootDir: a.opts.root,
		Keyring: keyring, Objects: objects, Streams: new(streaming.Client), Record: a.record, Logger: a.logger,
		Hooks: a.count.runtime(a.seen.Synced),
	}
	if err := c.configureEngine(a, &cfg); err != nil {
		return c, err
	}
	c.node.intoGroups(&cfg)
	c.managers.intoContainers(&cfg)
	c.Runtime, err = cri.New(vols.runtime(a.cluster.runtime(cfg)))
	return c, err
}

// startProcesses makes c run containers as plain processes.
func (c *connected) startProcesses(a *assembly) error {
	processes, err := process.New(process.Config{Dir: filepath.Join(a.opts.root, "process"), Logger: a.logger})
	if err != nil {
		return fmt.Errorf("--root=%s can't be used; choose another, or end the agent that has it: %w", a.opts.root, err)
	}
	c.name, c.typ, c.cri, c.images, c.close = "plain processes", process.Name, processes, processes, processes.Close
	c.noResize = "plain processes have no limits that could be changed"
	return offerSelf(filepath.Join(a.opts.root, "bin"))
}

// dial makes c run containers with the CRI runtime behind a socket. One that somebody
// holds and nobody answers at says nothing.
func (c *connected) dial(ctx context.Context, a *assembly) error {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client, err := remote.Dial(dialing, a.opts.runtime, remote.Config{
		ImageEndpoint: a.opts.kubelet.ImageServiceEndpoint, Timeout: a.opts.kubelet.RuntimeRequestTimeout.Duration, Logger: a.logger,
	})
	if err != nil {
		return fmt.Errorf("is a CRI runtime listening at %s, and may you use its socket? %w", a.opts.runtime, err)
	}
	c.name, c.typ, c.cri, c.images, c.close = a.opts.runtime, client.Name, client.Runtime, client.Images, client.Close
	return nil
}

// offerSelf puts this program on the PATH of the processes as kubeparts-agent, so
// that a pod can run its web server where there is no other.
func offerSelf(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	link := filepath.Join(dir, "kubeparts-agent")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(self, link); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
