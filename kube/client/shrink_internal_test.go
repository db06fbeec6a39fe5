package client

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// As a real server words it; what it passes on has no reason.
func TestARequestThatWasTooLargeIsKnown(t *testing.T) {
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return fmt.Errorf("patch: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}})
	}
	for name, err := range map[string]error{
		"server":              answer(413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"),
		"client of the store": answer(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2493789 vs. 2097152)"),
		"store":               answer(500, "", "etcdserver: request is too large"),
		"validation":          answer(422, metav1.StatusReasonInvalid, "status.message: Too long: may not be more than 32768 bytes"),
	} {
		assert.True(t, tooLarge(err), name)
	}
	for name, err := range map[string]error{
		"no API error":    errors.New("request is too large"),
		"another trouble": answer(500, metav1.StatusReasonInternalError, "etcdserver: leader changed"),
	} {
		assert.False(t, tooLarge(err), name)
	}
}
