package resolved_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/resolved"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// config is an object source with one ConfigMap.
type config struct{ level string }

func (c *config) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return &v1.ConfigMap{Data: map[string]string{"level": c.level}}, nil
}
func (*config) Secret(context.Context, string, string) (*v1.Secret, error) {
	return nil, fs.ErrNotExist
}
func (*config) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// A virtual-kubelet provider with its own backend: CreatePod passes the first value to the backend, and later ones
// replace the files of the running machine. Nothing else of the provider changes.
func ExampleResolver_Follow() {
	objects := &config{level: "debug"}
	resolver, err := resolved.New(resolved.Config{Objects: objects})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{ // as CreatePod receives it
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{
				Name: "main", Image: "web:1", Args: []string{"--name=$(NAME)"},
				Env: []v1.EnvVar{{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			}},
			Volumes: []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
				LocalObjectReference: v1.LocalObjectReference{Name: "settings"},
			}}}},
		},
	}
	created := false
	for p, err := range resolver.Follow(context.Background(), pod) { // in a goroutine, until DeletePod cancels ctx
		if err != nil {
			log.Fatal(err) // a provider logs it and waits
		}
		file := p.Volume("config").Files[0]
		if created {
			fmt.Println("update", file, string(file.Data))
			break
		}
		created = true
		fmt.Println("run", p.Container("main").Args, file, string(file.Data))

		objects.level = "info" // the informer of the provider reports it
		resolver.ObjectChanged(payload.KindConfigMap, "shop", "settings")
	}
	// Output:
	// run [--name=web] level (-rw-r--r--, 5 bytes) debug
	// update level (-rw-r--r--, 4 bytes) info
}
