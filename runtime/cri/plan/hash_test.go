package plan_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

func TestHashIsTheKubelets(t *testing.T) {
	for _, tc := range []struct {
		name, image string
		want        uint64
	}{
		{"test_container", "foo/image:v1", 0x8e45cbd0}, // rt-29
		{"foo", "bar", 0x11a6d6d6},                     // rt-29
	} {
		assert.Equal(t, tc.want, plan.Hash(&v1.Container{Name: tc.name, Image: tc.image}), tc.name)
	}
}

func TestHashLooksAtNameAndImageOnly(t *testing.T) {
	c := v1.Container{Name: "web", Image: "nginx:1"}
	h := plan.Hash(&c)

	more := c // rt-28
	more.Env = []v1.EnvVar{{Name: "A", Value: "b"}}
	more.Ports = []v1.ContainerPort{{ContainerPort: 80}}
	more.Command = []string{"sh"}
	assert.Equal(t, h, plan.Hash(&more))

	more.Image = "nginx:2"
	assert.NotEqual(t, h, plan.Hash(&more))
	more = c
	more.Name = "app"
	assert.NotEqual(t, h, plan.Hash(&more))
}

// The hash is defined as a hash of the printed bytes of a JSON document.
func FuzzHash(f *testing.F) {
	for _, seed := range []string{"", "nginx:1", "a<b>&c", "\"\\\n\t\x00\x7f", "größe", "\u2028\u2029", "\xff\xfe"} {
		f.Add(seed, "web")
		f.Add("web", seed)
	}
	f.Fuzz(func(t *testing.T, name, image string) {
		doc, err := json.Marshal(map[string]string{"image": image, "name": name})
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "([]uint8)%v", doc)
		assert.Equal(t, uint64(h.Sum32()), plan.Hash(&v1.Container{Name: name, Image: image}))
	})
}
