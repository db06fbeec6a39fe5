package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestTheConstantsAreOfOneVersionOfKubernetes(t *testing.T) {
	assert.Equal(t, fmt.Sprintf("1.%d", runtime.KubernetesMinor), runtime.KubernetesMajorMinor)
	assert.True(t, strings.HasPrefix(runtime.KubernetesVersion, "v"+runtime.KubernetesMajorMinor+"."), runtime.KubernetesVersion)
}
