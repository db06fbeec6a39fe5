package images_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// A pod's image is pulled with the second of its credentials. Another pod, which has
// none, is refused the image although it is present.
func Example() {
	registry := &fakeService{may: map[string][]string{"reg.example/app:1": {"ann"}}}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m, err := images.New(images.Config{
		Service:     registry, // of a remote.Client
		Credentials: secrets{"web": {secret("old", "eve", "1"), secret("new", "ann", "2")}},
		Dir:         dir,
		Hooks: images.Hooks{Pulled: func(i images.PullInfo) {
			fmt.Println("pulled for", i.Pod.Name, "error:", i.Err)
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range []*v1.Pod{podOf("web"), podOf("nosy")} {
		image, err := m.Ensure(context.Background(), images.Request{
			Pod: pod, Image: "reg.example/app:1", PullPolicy: v1.PullIfNotPresent,
			Event: func(_, reason, _ string) { fmt.Println(reason, "event of", pod.Name) },
		})
		if failed, ok := errors.AsType[*images.Error](err); ok {
			fmt.Println(pod.Name, "waits:", failed.Reason, failed.Message)
			continue
		}
		fmt.Println(pod.Name, "runs", image.Spec.Image)
	}
	// Output:
	// Pulling event of web
	// pulled for web error: <nil>
	// Pulled event of web
	// web runs sha256:reg.example/app:1
	// Pulling event of nosy
	// pulled for nosy error: rpc error: code = Unknown desc = reg.example/app:1: "" is unauthorized
	// Failed event of nosy
	// nosy waits: ErrImagePull reg.example/app:1: "" is unauthorized
}

// secrets are the credentials of pods by name. An agent reads them from the API
// server.
type secrets map[string][]images.Credential

func (s secrets) Lookup(_ context.Context, _ string, pod *v1.Pod) ([]images.Credential, error) {
	return s[pod.Name], nil
}
