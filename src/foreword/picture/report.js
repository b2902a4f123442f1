const button = document.querySelector(".share button");
button.hidden = false;
button.addEventListener("click", async () => {
  button.hidden = true;
  const page = "<!doctype html>\n" + document.documentElement.outerHTML + "\n";
  button.hidden = false;
  const name = document.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") + ".html";
  const file = new File([page], name, { type: "text/html" });
  if (matchMedia("(pointer: coarse)").matches && navigator.canShare?.({ files: [file] })) {
    await navigator.share({ files: [file], title: document.title }).catch(() => {});
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
