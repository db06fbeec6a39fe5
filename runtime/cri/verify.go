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
		field{"version", v.GetVersion() == ""}, field{"runtime name", v.GetRuntimeName() == ""},
		field{"runtime version", v.GetRuntimeVersion() == ""}, field{"runtime API version", v.GetRuntimeApiVersion() == ""},
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
		field{"id", s.Id == ""}, field{"pod name", s.Metadata.Name == ""}, field{"pod namespace", s.Metadata.Namespace == ""},
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

// verifyID refuses to take for made what has no ID (rt-147).
func verifyID(what, id string) error {
	if id == "" {
		return fmt.Errorf("the runtime gave the new %s no ID", what)
	}
	return nil
}

var errNoMetadata = errors.New("the runtime gave no metadata")

// A lack is something that an answer should have.
type field struct {
	what string
	is   bool
}

func missing(lacks ...field) error {
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
