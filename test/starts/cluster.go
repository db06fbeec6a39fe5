//go:build unix

package starts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/podsource/manifest"
)

const nodeName = "node"

// newPod returns a pod that is bound to the node.
func newPod(name string, container v1.Container) *v1.Pod {
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{
			NodeName: nodeName, TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			Containers: []v1.Container{container},
		},
	})
}

// A cluster is an API server in memory with a watch of its pods. It is the starter of a node.
type cluster struct {
	client     kubernetes.Interface
	kubeconfig string
	machine    machine
	requests   atomic.Int64 // of the node

	mu   sync.Mutex
	pods map[string]*tracked // by name
}

// A tracked is a pod of a cluster.
type tracked struct {
	milestones
	runs chan struct{} // closed when its status is Running and Ready
	gone chan struct{} // closed when it is deleted
}

// newCluster starts an API server, and watches it until ctx is done.
func newCluster(ctx context.Context, t testing.TB, dir string, m machine) (*cluster, error) {
	server := &apitest.Server{NoRecord: true}
	config := server.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{client: client, kubeconfig: filepath.Join(dir, "kubeconfig"), machine: m, pods: map[string]*tracked{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	counted := func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		server.ServeHTTP(w, r)
	}
	serving := &http.Server{Handler: http.HandlerFunc(counted), ReadHeaderTimeout: time.Minute}
	go func() { _ = serving.Serve(listener) }() // until Close
	t.Cleanup(func() { _ = serving.Close() })
	events, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	t.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			c.observe(e)
		}
	}()
	return c, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://%s"}}],`+
		`"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}],"current-context":"x"}`, listener.Addr()), 0o600)
}

// observe records an event of the watch.
func (c *cluster) observe(e watch.Event) {
	now := time.Now()
	pod, ok := e.Object.(*v1.Pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[pod.Name]
	if p == nil {
		return
	}
	if e.Type == watch.Deleted {
		close(p.gone)
	}
	if e.Type != watch.Modified || !p.reported.IsZero() {
		return
	}
	p.writes++
	if p.admitted.IsZero() && pod.Status.StartTime != nil {
		p.admitted = now
	}
	if pod.Status.Phase == v1.PodRunning && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready {
		p.reported = now
		close(p.runs)
	}
}

func (c *cluster) create(ctx context.Context, name string) (*tracked, error) {
	p := &tracked{runs: make(chan struct{}), gone: make(chan struct{})}
	c.mu.Lock()
	c.pods[name] = p
	c.mu.Unlock()
	created, err := c.client.CoreV1().Pods("default").Create(ctx, newPod(name, c.machine.container()), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	p.bound, p.uid = time.Now(), created.UID
	c.mu.Unlock()
	return p, nil
}

// start implements starter.
func (c *cluster) start(ctx context.Context, name string) (milestones, error) {
	p, err := c.create(ctx, name)
	if err != nil {
		return milestones{}, err
	}
	select {
	case <-p.runs:
	case <-ctx.Done():
		return milestones{}, fmt.Errorf("pod %s does not run: %w", name, context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.milestones, nil
}

// remove implements starter.
func (c *cluster) remove(ctx context.Context, name string, wait bool) error {
	if err := c.client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil || !wait {
		return err
	}
	c.mu.Lock()
	p := c.pods[name]
	c.mu.Unlock()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("pod %s is not deleted", name), context.Cause(ctx))
	}
}
