package runtime

// The version of Kubernetes whose node this build is. It is the one parameter of the behavior that
// differs between minor versions, and of the versions that a node reports. They change together:
// `.ci/run next` sets them to the newest pre-release, a release to the next minor.
const (
	// KubernetesVersion is the release, such as "v1.37.2".
	KubernetesVersion = "v1.37.2"

	// KubernetesMinor is its minor version: 37 is 1.37.
	KubernetesMinor = 37

	// KubernetesMajorMinor is the minor version as in user agents, such as "1.37".
	KubernetesMajorMinor = "1.37"
)
