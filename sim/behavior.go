package sim

import (
	"errors"
	"strings"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// imageName is the name of the images of simulated containers. The tag is the text of the
// behavior, so that the spec of a pod contains the behavior of its containers.
const imageName = "sim.test/does:"

// The characters of the text of a behavior that a tag may not contain are replaced.
var (
	toTag   = strings.NewReplacer("=", "-", "@", "..", ",", "_")
	fromTag = strings.NewReplacer("-", "=", "..", "@", "_", ",")
)

// Image returns the name of the image of containers with a behavior.
func Image(b fake.Behavior) string { return imageName + toTag.Replace(b.String()) }

// ImageBehavior returns the behavior of containers with an image that [Image] has named.
func ImageBehavior(image string) (fake.Behavior, error) {
	return fake.ParseBehavior(fromTag.Replace(strings.TrimPrefix(image, imageName)))
}

// parseBehavior parses the behavior of a container of a Step.
func parseBehavior(text string) (fake.Behavior, error) {
	b, err := fake.ParseBehavior(text)
	if err != nil {
		return b, err
	}
	if again, err := ImageBehavior(Image(b)); err != nil || again.String() != b.String() || strings.ContainsRune(b.String(), 'µ') {
		return b, errors.New("cannot be the tag of an image")
	}
	return b, b.Only("start", "exit", "oom", "reason", "crashes", "stop", "ignoreTERM", "ready", "started", "unhealthy", "liveness", "version")
}
