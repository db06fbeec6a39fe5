package cri

import (
	"errors"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// verifyVersion refuses an answer that does not say who speaks what (rt-145).
func verifyVersion(v *runtimeapi.VersionResponse) error {
	return missing(
		lack{"version", v.GetVersion() == ""}, lack{"runtime name", v.GetRuntimeName() == ""},
		lack{"runtime version", v.GetRuntimeVersion() == ""}, lack{"runtime API version", v.GetRuntimeApiVersion() == ""},
	)
}

// verifySandbox and verifyContainer refuse a status that could not be told from
// another's (rt-146).
func verifySandbox(answer *runtimeapi.PodSandboxStatusResponse) error {
	s := answer.GetStatus()
	if s.GetMetadata() == nil {
		return errNoMetadata
	}
	return missing(
		lack{"id", s.Id == ""}, lack{"pod name", s.Metadata.Name == ""}, lack{"pod namespace", s.Metadata.Namespace == ""},
		lack{"pod UID", s.Metadata.Uid == ""}, lack{"time of creation", s.CreatedAt == 0},
	)
}

func verifyContainer(answer *runtimeapi.ContainerStatusResponse) error {
	s := answer.GetStatus()
	if s.GetMetadata() == nil {
		return errNoMetadata
	}
	return missing(
		lack{"id", s.Id == ""}, lack{"container name", s.Metadata.Name == ""}, lack{"time of creation", s.CreatedAt == 0},
		lack{"image", s.GetImage().GetImage() == ""}, lack{"image reference", s.ImageRef == ""},
	)
}

// verifyID refuses to take for made what has no ID (rt-147).
func verifyID(what, id string) error {
	if id == "" {
		return fmt.Errorf("the runtime gave the new %s no ID", what)
	}
	return nil
}

var errNoMetadata = errors.New("the runtime gave no metadata")

// A lack is something that an answer should have.
type lack struct {
	what string
	is   bool
}

func missing(lacks ...lack) error {
	var names []string
	for _, l := range lacks {
		if l.is {
			names = append(names, l.what)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("the runtime gave no %s", strings.Join(names, ", no "))
}
