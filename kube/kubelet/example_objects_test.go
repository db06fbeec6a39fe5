package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// An edgeCache is the cache of a product that receives ConfigMaps and Secrets in its own way.
type edgeCache struct {
	mu         sync.Mutex
	configMaps map[string]*v1.ConfigMap // by namespace/name
}

func (c *edgeCache) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.configMaps[namespace+"/"+name]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("configmap %q: %w", name, fs.ErrNotExist)
}

func (*edgeCache) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	return nil, fmt.Errorf("secret %q: %w", name, fs.ErrNotExist)
}

func (*edgeCache) Token(context.Context, string, string, *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return nil, errors.New("there are no service accounts")
}

// A product without an API server has ConfigMaps and Secrets in a cache of its own. It reports each
// change with Kubelet.ObjectChanged.
func ExampleObjects() {
	cfg, remove := exampleConfig(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: nginx
    env:
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
`)
	defer remove()
	sink, running := whenRunning(1)
	cfg.Sink = sink
	cfg.Objects.Source = &edgeCache{configMaps: map[string]*v1.ConfigMap{"default/settings": {Data: map[string]string{"color": "blue"}}}}

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runUntil(k, running))
	for _, e := range cfg.Runtime.Service.(*fakecri.Runtime).Containers("")[0].Config.Envs {
		if e.Key == "COLOR" {
			fmt.Printf("%s %s\n", e.Key, e.Value)
		}
	}
	// Output:
	// <nil>
	// COLOR blue
}
