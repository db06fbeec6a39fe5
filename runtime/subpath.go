package runtime

import "k8s.io/apimachinery/pkg/types"

// A SubPath is the sub-path of a volume in one volumeMount of a container.
type SubPath struct {
	PodUID     types.UID
	Volume     string // name in the pod
	VolumePath string // Volume.Path
	Container  string
	Index      int    // of the volumeMount in the container
	Path       string // in the volume, with variables expanded
	ReadOnly   bool
}
