//go:build !linux

package notify

import "context"

// Run calls low each time the usage exceeds a level. It blocks until ctx is done and returns
// nil, or returns an error if the usage cannot be read. A second call returns an error.
func (n *Notifier) Run(ctx context.Context, low func()) error {
	if err := n.ran.Enter("notify: Notifier"); err != nil {
		return err
	}
	return n.poll(ctx, low)
}
