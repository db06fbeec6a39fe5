package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestListingPrintsAsTables(t *testing.T) {
	l := Listing{
		Sandboxes: []*runtimeapi.PodSandbox{{
			Id: "0123456789abcdef", CreatedAt: 1_500_000_000, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
			Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "ns", Name: "web", Attempt: 2},
			Labels:   map[string]string{"b": "2", "a": "1"},
		}},
		Containers: []*runtimeapi.Container{
			{Id: "second", PodSandboxId: "0123456789abcdef", CreatedAt: 3_000_000_000, State: runtimeapi.ContainerState_CONTAINER_RUNNING, Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: 1}},
			{Id: "first", PodSandboxId: "0123456789abcdef", CreatedAt: 2_000_000_000, State: runtimeapi.ContainerState_CONTAINER_EXITED, Metadata: &runtimeapi.ContainerMetadata{Name: "app"}},
		},
		Crictl: "POD ID\n",
	}
	require.Equal(t, `SANDBOX        POD     ATTEMPT  STATE     CREATED       LABELS
0123456789abc  ns/web  2        NOTREADY  00:00:01.500  a=1,b=2

CONTAINER  NAME  ATTEMPT  STATE    CREATED       SANDBOX        LABELS
first      app   0        EXITED   00:00:02.000  0123456789abc  
second     app   1        RUNNING  00:00:03.000  0123456789abc  
POD ID
`, l.String())
}
