package cri

import (
	"errors"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// verifyVersion returns an error if a required field is empty.
func verifyVersion(v *runtimeapi.VersionResponse) error {
	return missing(
		field{"version", v.GetVersion() == ""}, field{"runtime name", v.GetRuntimeName() == ""},
		field{"runtime version", v.GetRuntimeVersion() == ""}, field{"runtime API version", v.GetRuntimeApiVersion() == ""},
	)
}

// verifySandbox and verifyContainer return an error if a field that identifies the object
// is empty. The namespace of a sandbox does not: without it, the pod must be inspected to be
// stopped.
func verifySandbox(answer *runtimeapi.PodSandboxStatusResponse) error {
	s := answer.GetStatus()
	if s.GetMetadata() == nil {
		return errNoMetadata
	}
	return missing(
		field{"id", s.Id == ""}, field{"pod name", s.Metadata.Name == ""},
		field{"pod UID", s.Metadata.Uid == ""}, field{"time of creation", s.CreatedAt == 0},
	)
}

func verifyContainer(answer *runtimeapi.ContainerStatusResponse) error {
	s := answer.GetStatus()
	if s.GetMetadata() == nil {
		return errNoMetadata
	}
	return missing(
		field{"id", s.Id == ""}, field{"container name", s.Metadata.Name == ""}, field{"time of creation", s.CreatedAt == 0},
		field{"image", s.GetImage().GetImage() == ""}, field{"image reference", s.ImageRef == ""},
	)
}

// verifyID returns an error if a created object has no ID.
func verifyID(what, id string) error {
	if id == "" {
		return fmt.Errorf("the runtime gave the new %s no ID", what)
	}
	return nil
}

// verifyRestored returns an error unless the response has an ID for the sandbox, and one for each container of the
// request and for no other.
func verifyRestored(answer *runtimeapi.RestorePodResponse, req *runtimeapi.RestorePodRequest) error {
	if err := verifyID("sandbox", answer.GetPodSandboxId()); err != nil {
		return err
	}
	ids := map[string]string{}
	for _, c := range answer.GetRestoredContainers() {
		ids[c.GetName()] = c.GetContainerId()
	}
	for _, c := range req.GetContainerConfigs() {
		if err := verifyID("container "+c.GetMetadata().GetName(), ids[c.GetMetadata().GetName()]); err != nil {
			return err
		}
	}
	if n := len(answer.GetRestoredContainers()); n != len(req.GetContainerConfigs()) {
		return fmt.Errorf("the runtime restored %d containers instead of %d", n, len(req.GetContainerConfigs()))
	}
	return nil
}

var errNoMetadata = errors.New("the runtime gave no metadata")

// A field is a required field of a response.
type field struct {
	name  string
	empty bool
}

func missing(fields ...field) error {
	var names []string
	for _, l := range fields {
		if l.empty {
			names = append(names, l.name)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("the runtime gave no %s", strings.Join(names, ", no "))
}
