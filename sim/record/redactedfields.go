package record

// An action is what a redactor does with a field.
type action int

const (
	keep        action = iota
	mask               // replace each value by its mask
	annotations        // mask the values of a map, except for keptAnnotations
	scrub              // replace masked values in a text
)

// redactedFields are the fields of the CRI's messages and of pods that are not written as they are.
// All other fields that contain text are in testdata/reviewed.txt; a test fails for one that is in
// neither.
var redactedFields = map[string]action{
	// Environments, and what a program receives: commands contain expanded variables.
	"runtime.v1.KeyValue.value":           mask,
	"runtime.v1.ContainerConfig.command":  mask,
	"runtime.v1.ContainerConfig.args":     mask,
	"runtime.v1.ExecSyncRequest.cmd":      mask,
	"runtime.v1.ExecRequest.cmd":          mask,
	"v1.EnvVar.Value":                     mask,
	"v1.Container.Command":                mask,
	"v1.Container.Args":                   mask,
	"v1.EphemeralContainerCommon.Command": mask,
	"v1.EphemeralContainerCommon.Args":    mask,
	"v1.ExecAction.Command":               mask,
	"v1.HTTPHeader.Value":                 mask,
	"v1.HTTPGetAction.Path":               mask,

	// Output of programs.
	"runtime.v1.ExecSyncResponse.stdout":  mask,
	"runtime.v1.ExecSyncResponse.stderr":  mask,
	"v1.ContainerStateTerminated.Message": mask,

	// Credentials.
	"runtime.v1.AuthConfig.username":                             mask,
	"runtime.v1.AuthConfig.password":                             mask,
	"runtime.v1.AuthConfig.auth":                                 mask,
	"runtime.v1.AuthConfig.identity_token":                       mask,
	"runtime.v1.AuthConfig.registry_token":                       mask,
	"runtime.v1.WindowsSandboxSecurityContext.credential_spec":   mask,
	"runtime.v1.WindowsContainerSecurityContext.credential_spec": mask,
	"v1.WindowsSecurityContextOptions.GMSACredentialSpec":        mask,

	// URLs of streams contain tokens; others may.
	"runtime.v1.ExecResponse.url":          mask,
	"runtime.v1.AttachResponse.url":        mask,
	"runtime.v1.PortForwardResponse.url":   mask,
	"v1.GitRepoVolumeSource.Repository":    mask,
	"v1.AzureDiskVolumeSource.DataDiskURI": mask,

	// Maps with any content.
	"runtime.v1.PodSandboxConfig.annotations":                annotations,
	"runtime.v1.PodSandbox.annotations":                      annotations,
	"runtime.v1.PodSandboxStatus.annotations":                annotations,
	"runtime.v1.PodSandboxAttributes.annotations":            annotations,
	"runtime.v1.ContainerConfig.annotations":                 annotations,
	"runtime.v1.Container.annotations":                       annotations,
	"runtime.v1.ContainerStatus.annotations":                 annotations,
	"runtime.v1.ContainerAttributes.annotations":             annotations,
	"runtime.v1.ImageSpec.annotations":                       annotations,
	"runtime.v1.UpdateContainerResourcesRequest.annotations": annotations,
	"v1.ObjectMeta.Annotations":                              annotations,
	"v1.CSIVolumeSource.VolumeAttributes":                    mask,
	"v1.FlexVolumeSource.Options":                            mask,
	"runtime.v1.CheckpointPodRequest.options":                mask,
	"runtime.v1.RestorePodRequest.options":                   mask,
	"runtime.v1.Mount.mount_options":                         mask,
	"v1.PodCertificateProjection.UserAnnotations":            mask,

	// Verbose information contains the environment of containers.
	"runtime.v1.StatusResponse.info":           mask,
	"runtime.v1.PodSandboxStatusResponse.info": mask,
	"runtime.v1.ContainerStatusResponse.info":  mask,
	"runtime.v1.ImageStatusResponse.info":      mask,

	// Texts of errors.
	"runtime.v1.ContainerStatus.reason":   scrub,
	"runtime.v1.ContainerStatus.message":  scrub,
	"runtime.v1.RuntimeCondition.message": scrub,
	"v1.ContainerStateWaiting.Message":    scrub,
	"v1.PodStatus.Message":                scrub,
	"v1.PodCondition.Message":             scrub,
	"v1.VolumeHealthCondition.Message":    scrub,
	"v1.ResourceHealth.Message":           scrub,
}

// keptAnnotations are those that the agent writes, or reads to decide, and that contain no secrets.
var keptAnnotations = []string{
	"io.kubernetes.container.hash",
	"io.kubernetes.container.ports",
	"io.kubernetes.container.restartCount",
	"io.kubernetes.container.terminationMessagePath",
	"io.kubernetes.container.terminationMessagePolicy",
	"io.kubernetes.pod.terminationGracePeriod",
	"kubernetes.io/config.hash",
	"kubernetes.io/config.mirror",
	"kubernetes.io/config.seen",
	"kubernetes.io/config.source",
}
