package token_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/token"
)

// vol-56: with a clock that is ahead, a new token may be due for renewal immediately, or
// expired. Requests are nevertheless not repeated without a pause.
func TestATokenOfTheFutureIsNotAskedForAllTheTime(t *testing.T) {
	for name, life := range map[string]time.Duration{"due": time.Minute, "over": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := token.New(token.Config{Get: func(context.Context, string, string, *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
					return &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
						Token: "t", ExpirationTimestamp: metav1.NewTime(time.Now().Add(life)),
					}}, nil
				}})
				require.NoError(t, err)
				got, err := c.Token(t.Context(), "default", "sa", new(authenticationv1.TokenRequest))
				require.NoError(t, err)
				assert.GreaterOrEqual(t, time.Until(got.RefreshAt), 30*time.Second)
			})
		})
	}
}
