package resolved_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/resolved"
)

// A group is a request of a container instance service, as several clouds have one.
type group struct {
	Instances  []instance
	Volumes    map[string]map[string]string // name → path → content in base64
	Registries map[string]registry          // by server
}

type instance struct {
	Name, Image string
	Command     []string
	Env         map[string]string
}

type registry struct{ Username, Password string }

// groupOf converts a resolved pod.
func groupOf(p *resolved.Pod) group {
	g := group{Volumes: map[string]map[string]string{}, Registries: map[string]registry{}}
	for _, v := range p.Volumes {
		g.Volumes[v.Name] = map[string]string{}
		for _, f := range v.Files {
			g.Volumes[v.Name][f.Path] = base64.StdEncoding.EncodeToString(f.Data)
		}
	}
	for _, c := range p.Containers {
		i := instance{Name: c.Name, Image: c.Image, Command: append(c.Command, c.Args...), Env: map[string]string{}}
		for _, e := range c.Env {
			i.Env[e.Name] = e.Value
		}
		if len(c.Credentials) > 0 {
			server, _, _ := strings.Cut(c.Image, "/")
			g.Registries[server] = registry{c.Credentials[0].Username, c.Credentials[0].Password}
		}
		g.Instances = append(g.Instances, i)
	}
	return g
}

// store is an object source with a Secret for a volume, and one for pulls.
type store struct{}

func (store) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return nil, fs.ErrNotExist
}

func (store) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if name == "pull" {
		config := `{"auths":{"registry.example":{"username":"robot","password":"secret"}}}`
		return &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(config)}}, nil
	}
	return &v1.Secret{Data: map[string][]byte{"cert": []byte("PEM"), "key": []byte("KEY")}}, nil
}

func (store) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// A provider for a container instance service converts a resolved pod in twenty lines. Providers that read
// Secrets and ConfigMaps themselves have some three hundred for it, without items, modes, updates and
// tokens that are bound to the pod, beside those of virtual-kubelet for variables.
func ExampleResolver_Resolve() {
	resolver, err := resolved.New(resolved.Config{Objects: store{}})
	if err != nil {
		log.Fatal(err)
	}
	pod, err := resolver.Resolve(context.Background(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"},
		Spec: v1.PodSpec{
			ImagePullSecrets: []v1.LocalObjectReference{{Name: "pull"}},
			Containers: []v1.Container{{
				Name: "main", Image: "registry.example/web:1", Command: []string{"serve"}, Args: []string{"--pod=$(POD)"},
				Env: []v1.EnvVar{{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			}},
			Volumes: []v1.Volume{{Name: "tls", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{
				SecretName: "tls", Items: []v1.KeyToPath{{Key: "cert", Path: "certs/web.pem"}},
			}}}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	g := groupOf(pod)
	fmt.Println(g.Instances[0].Command, g.Instances[0].Env["POD"])
	fmt.Println(g.Volumes)
	fmt.Println(g.Registries)
	// Output:
	// [serve --pod=web] web
	// map[tls:map[certs/web.pem:UEVN]]
	// map[registry.example:{robot secret}]
}
