package fakecri_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The most specific behavior applies to a container: each of these exits with a code
// of its own.
func TestTheMostSpecificBehaviorApplies(t *testing.T) {
	exits := func(code int32) fake.Behavior { return fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: code}} }
	ofPod := map[string]string{fakecri.AnnotationBehavior: "exit=2@1s"}
	for _, test := range []struct {
		name        string
		annotations map[string]string
		container   string
		image       string
		containers  map[string]fake.Behavior
		images      map[string]fake.Behavior
		want        int32
	}{
		{
			name: "an annotation for the container", want: 1, container: "web", image: "app",
			annotations: map[string]string{fakecri.AnnotationBehavior: "exit=2@1s", fakecri.AnnotationContainerBehavior + "web": "exit=1@1s"},
			containers:  map[string]fake.Behavior{"web": exits(3)},
		},
		{
			name: "an annotation for the pod", want: 2, container: "web", image: "app",
			annotations: map[string]string{fakecri.AnnotationBehavior: "exit=2@1s", fakecri.AnnotationContainerBehavior + "other": "exit=1@1s"},
			containers:  map[string]fake.Behavior{"web": exits(3)}, images: map[string]fake.Behavior{"app": exits(4)},
		},
		{name: "its name", want: 3, container: "web", image: "app", containers: map[string]fake.Behavior{"web": exits(3)}, images: map[string]fake.Behavior{"app": exits(4)}},
		{name: "its image", want: 4, container: "web", image: "app", images: map[string]fake.Behavior{"docker.io/library/app:latest": exits(4), "app": exits(5), "*": exits(6)}},
		{name: "any tag of its image", want: 5, container: "web", image: "app:2", images: map[string]fake.Behavior{"app:latest": exits(4), "app": exits(5), "*": exits(6)}},
		{name: "any image", want: 6, container: "web", image: "other", images: map[string]fake.Behavior{"app": exits(5), "*": exits(6)}},
		{name: "a pod alone", want: 2, container: "web", image: "app", annotations: ofPod},
	} {
		t.Run(test.name, func(t *testing.T) {
			on(t, fakecri.Config{Behaviors: fake.Behaviors{Containers: test.containers, Images: test.images}}, func(n *node) {
				pod := podConfig("a")
				pod.Annotations = test.annotations
				sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
				require.NoError(n, err)
				// As the kubelet does: by the ID of the pulled image.
				imageID := n.pull(test.image)
				for i, image := range []*runtimeapi.ImageSpec{
					{Image: imageID, UserSpecifiedImage: test.image}, {Image: imageID}, {Image: test.image},
				} {
					cfg := containerConfig("a", test.container)
					cfg.Metadata.Attempt, cfg.Image = uint32(i), image
					id, err := n.CreateContainer(n.ctx, sandbox, cfg, pod)
					require.NoError(n, err)
					require.NoError(n, n.StartContainer(n.ctx, id))
					time.Sleep(time.Minute)
					assert.Equal(n, test.want, n.look(id).ExitCode, "%v", image)
				}
			})
		})
	}
}

func TestAnAnnotationThatCannotBeReadIsAnErrorOfItsContainer(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		pod := podConfig("a")
		pod.Annotations = map[string]string{fakecri.AnnotationContainerBehavior + "web": "runfor=1s"}
		sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
		require.NoError(n, err)
		cfg := containerConfig("a", "web")
		cfg.Image.Image = n.pull("app")
		_, err = n.CreateContainer(n.ctx, sandbox, cfg, pod)
		hasCode(n, codes.Unknown, err)
		assert.ErrorContains(n, err, "annotation behavior.fakecri.kubeparts.io/web: behavior \"runfor=1s\": \"runfor=1s\": unknown option")
		assert.Empty(n, n.Containers("a"))
		n.created(sandbox, "a", "other", 0)
	})
}

func TestTheKeyOfAnAnnotationFitsTheLongestContainer(t *testing.T) {
	// A prefix of up to 253 bytes, which is a subdomain, and up to 63 after it.
	prefix, rest, ok := strings.Cut(fakecri.AnnotationContainerBehavior+strings.Repeat("x", 63), "/")
	assert.True(t, ok)
	assert.LessOrEqual(t, len(prefix), 253)
	assert.LessOrEqual(t, len(rest), 63)
}
