package console

import (
	"sync"
	"time"
)

// refresh is how often a progress bar is drawn.
const refresh = 100 * time.Millisecond

// Show draws what snapshot returns as the console's status line until the returned function is called, which takes the
// line away and waits for the drawing to end. It may be called more than once.
func (c *Console) Show(snapshot func() Progress, ascii bool) (stop func()) {
	if !c.Live() {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(refresh)
		defer ticker.Stop()
		for {
			c.SetStatus(snapshot().Render(c.StatusWidth(), ascii))
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
		c.SetStatus("")
	})
}
