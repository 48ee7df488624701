// Reads the page again when a run has gone on, but not while completions are open, which would be taken from the reader.
{
  const { seconds, state } = document.body.dataset, connection = document.getElementById("connection");
  setInterval(async () => {
    const reading = document.querySelector("main details[open]");
    let said = reading ? "paused while completions are open" : "";
    try {
      const answer = await fetch("/", { method: "HEAD", cache: "no-store" });
      if (answer.headers.get("ETag") !== `"${state}"` && !reading) location.reload();
    } catch { said = "the server has ended: this page stays as it is"; }
    if (connection.textContent !== said) connection.textContent = said;
  }, 1000 * seconds);
}
