package status_test

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// forget has m retain all pods but one.
func forget(m *status.Manager, gone types.UID) {
	_ = m.Retain(context.Background(), func(uid types.UID) bool { return uid != gone })
}
